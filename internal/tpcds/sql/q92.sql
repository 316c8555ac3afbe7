-- Discounts on the web that are far above the usual one of the item.
SELECT sum(ws_ext_discount_amt) AS excess, count(*) AS sales FROM web_sales, item, date_dim
WHERE i_manufact_id BETWEEN [MAKER] AND [MAKER] + 20 AND i_item_sk = ws_item_sk AND d_date BETWEEN date '[DATE]' AND date '[DATE]' + 90 AND d_date_sk = ws_sold_date_sk
  AND ws_ext_discount_amt > (SELECT 1.3 * avg(ws_ext_discount_amt) FROM web_sales, date_dim
    WHERE ws_item_sk = i_item_sk AND d_date BETWEEN date '[DATE]' AND date '[DATE]' + 90 AND d_date_sk = ws_sold_date_sk)
ORDER BY excess LIMIT 100
