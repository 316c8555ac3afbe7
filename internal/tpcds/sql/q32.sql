-- Discounts in the catalog that are far above the usual one of the item.
SELECT sum(cs_ext_discount_amt) AS excess FROM catalog_sales, item, date_dim
WHERE i_manufact_id BETWEEN [MAKER] AND [MAKER] + 20 AND i_item_sk = cs_item_sk AND d_date BETWEEN date '[DATE]' AND date '[DATE]' + 90 AND d_date_sk = cs_sold_date_sk
  AND cs_ext_discount_amt > (SELECT 1.3 * avg(cs_ext_discount_amt) FROM catalog_sales, date_dim
    WHERE cs_item_sk = i_item_sk AND d_date BETWEEN date '[DATE]' AND date '[DATE]' + 90 AND d_date_sk = cs_sold_date_sk)
LIMIT 100
