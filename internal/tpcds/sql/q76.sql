-- Sales whose customer, address or way of sending is not known.
SELECT channel, missing, d_year, d_qoy, i_category, count(*) AS number, sum(price) AS amount FROM (
  SELECT 'store' AS channel, 'address' AS missing, d_year, d_qoy, i_category, ss_ext_sales_price AS price FROM store_sales, item, date_dim
  WHERE ss_addr_sk IS NULL AND ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk
  UNION ALL
  SELECT 'web', 'customer', d_year, d_qoy, i_category, ws_ext_sales_price FROM web_sales, item, date_dim
  WHERE ws_ship_customer_sk IS NULL AND ws_sold_date_sk = d_date_sk AND ws_item_sk = i_item_sk
  UNION ALL
  SELECT 'catalog', 'ship mode', d_year, d_qoy, i_category, cs_ext_sales_price FROM catalog_sales, item, date_dim
  WHERE cs_ship_mode_sk IS NULL AND cs_sold_date_sk = d_date_sk AND cs_item_sk = i_item_sk) x
GROUP BY channel, missing, d_year, d_qoy, i_category ORDER BY channel, missing, d_year, d_qoy, i_category LIMIT 100
