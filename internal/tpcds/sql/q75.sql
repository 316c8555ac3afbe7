-- Brands and makers of a category that sold less than in the year before, returns left out.
WITH sold AS (SELECT d_year, i_brand_id, i_class_id, i_category_id, i_manufact_id, sum(number) AS number, sum(amount) AS amount FROM (
  SELECT d_year, i_brand_id, i_class_id, i_category_id, i_manufact_id, cs_quantity - coalesce(cr_return_quantity, 0) AS number, cs_ext_sales_price - coalesce(cr_return_amount, 0.0) AS amount
  FROM catalog_sales JOIN item ON i_item_sk = cs_item_sk JOIN date_dim ON d_date_sk = cs_sold_date_sk LEFT JOIN catalog_returns ON cs_order_number = cr_order_number AND cs_item_sk = cr_item_sk WHERE i_category = '[CATEGORY]'
  UNION
  SELECT d_year, i_brand_id, i_class_id, i_category_id, i_manufact_id, ss_quantity - coalesce(sr_return_quantity, 0), ss_ext_sales_price - coalesce(sr_return_amt, 0.0)
  FROM store_sales JOIN item ON i_item_sk = ss_item_sk JOIN date_dim ON d_date_sk = ss_sold_date_sk LEFT JOIN store_returns ON ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk WHERE i_category = '[CATEGORY]'
  UNION
  SELECT d_year, i_brand_id, i_class_id, i_category_id, i_manufact_id, ws_quantity - coalesce(wr_return_quantity, 0), ws_ext_sales_price - coalesce(wr_return_amt, 0.0)
  FROM web_sales JOIN item ON i_item_sk = ws_item_sk JOIN date_dim ON d_date_sk = ws_sold_date_sk LEFT JOIN web_returns ON ws_order_number = wr_order_number AND ws_item_sk = wr_item_sk WHERE i_category = '[CATEGORY]') x
  GROUP BY d_year, i_brand_id, i_class_id, i_category_id, i_manufact_id)
SELECT p.d_year AS before, t.d_year AS year, t.i_brand_id, t.i_class_id, t.i_category_id, t.i_manufact_id, p.number AS before_number, t.number, t.number - p.number AS more, t.amount - p.amount AS more_amount
FROM sold t, sold p WHERE t.i_brand_id = p.i_brand_id AND t.i_class_id = p.i_class_id AND t.i_category_id = p.i_category_id AND t.i_manufact_id = p.i_manufact_id AND t.d_year = [YEAR] + 1 AND p.d_year = [YEAR]
  AND p.number > 0 AND CASE WHEN p.number > 0 THEN cast(t.number AS decimal(17,2)) / cast(p.number AS decimal(17,2)) END < 0.9
ORDER BY more, more_amount, t.i_brand_id, t.i_class_id, t.i_manufact_id LIMIT 100
