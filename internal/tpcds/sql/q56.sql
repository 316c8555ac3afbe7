-- Sales of items of some colors in a time zone, of all channels.
WITH s AS (SELECT i_item_id, sum(ss_ext_sales_price) AS sales FROM store_sales, date_dim, customer_address, item
  WHERE i_item_id IN (SELECT i_item_id FROM item WHERE i_color IN ('[COLOR1]', '[COLOR2]', '[COLOR3]', '[COLOR4]', '[COLOR5]')) AND ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk
    AND d_year = [YEAR] AND d_moy = [EARLY] AND ss_addr_sk = ca_address_sk AND ca_gmt_offset = [OFFSET] GROUP BY i_item_id),
c AS (SELECT i_item_id, sum(cs_ext_sales_price) AS sales FROM catalog_sales, date_dim, customer_address, item
  WHERE i_item_id IN (SELECT i_item_id FROM item WHERE i_color IN ('[COLOR1]', '[COLOR2]', '[COLOR3]', '[COLOR4]', '[COLOR5]')) AND cs_item_sk = i_item_sk AND cs_sold_date_sk = d_date_sk
    AND d_year = [YEAR] AND d_moy = [EARLY] AND cs_bill_addr_sk = ca_address_sk AND ca_gmt_offset = [OFFSET] GROUP BY i_item_id),
w AS (SELECT i_item_id, sum(ws_ext_sales_price) AS sales FROM web_sales, date_dim, customer_address, item
  WHERE i_item_id IN (SELECT i_item_id FROM item WHERE i_color IN ('[COLOR1]', '[COLOR2]', '[COLOR3]', '[COLOR4]', '[COLOR5]')) AND ws_item_sk = i_item_sk AND ws_sold_date_sk = d_date_sk
    AND d_year = [YEAR] AND d_moy = [EARLY] AND ws_bill_addr_sk = ca_address_sk AND ca_gmt_offset = [OFFSET] GROUP BY i_item_id)
SELECT i_item_id, sum(sales) AS sales FROM (SELECT * FROM s UNION ALL SELECT * FROM c UNION ALL SELECT * FROM w) x GROUP BY i_item_id ORDER BY sales, i_item_id LIMIT 100
