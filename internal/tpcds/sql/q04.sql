-- Customers whose spending by catalog grows more than in stores and on the web.
WITH totals AS (
  SELECT c_customer_id AS id, c_first_name AS first, c_last_name AS last, c_email_address AS email, d_year AS year, 's' AS kind,
    sum((ss_ext_list_price - ss_ext_wholesale_cost - ss_ext_discount_amt + ss_ext_sales_price) / 2) AS total
  FROM customer, store_sales, date_dim WHERE c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk
  GROUP BY c_customer_id, c_first_name, c_last_name, c_email_address, d_year
  UNION ALL
  SELECT c_customer_id, c_first_name, c_last_name, c_email_address, d_year, 'c',
    sum((cs_ext_list_price - cs_ext_wholesale_cost - cs_ext_discount_amt + cs_ext_sales_price) / 2)
  FROM customer, catalog_sales, date_dim WHERE c_customer_sk = cs_bill_customer_sk AND cs_sold_date_sk = d_date_sk
  GROUP BY c_customer_id, c_first_name, c_last_name, c_email_address, d_year
  UNION ALL
  SELECT c_customer_id, c_first_name, c_last_name, c_email_address, d_year, 'w',
    sum((ws_ext_list_price - ws_ext_wholesale_cost - ws_ext_discount_amt + ws_ext_sales_price) / 2)
  FROM customer, web_sales, date_dim WHERE c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk
  GROUP BY c_customer_id, c_first_name, c_last_name, c_email_address, d_year)
SELECT s2.id, s2.first, s2.last, s2.email FROM totals s1, totals s2, totals c1, totals c2, totals w1, totals w2
WHERE s2.id = s1.id AND s1.id = c2.id AND s1.id = c1.id AND s1.id = w1.id AND s1.id = w2.id
  AND s1.kind = 's' AND c1.kind = 'c' AND w1.kind = 'w' AND s2.kind = 's' AND c2.kind = 'c' AND w2.kind = 'w'
  AND s1.year = [YEAR] AND s2.year = [YEAR] + 1 AND c1.year = [YEAR] AND c2.year = [YEAR] + 1 AND w1.year = [YEAR] AND w2.year = [YEAR] + 1
  AND s1.total > 0 AND c1.total > 0 AND w1.total > 0
  AND CASE WHEN c1.total > 0 THEN c2.total / c1.total END > CASE WHEN s1.total > 0 THEN s2.total / s1.total END
  AND CASE WHEN c1.total > 0 THEN c2.total / c1.total END > CASE WHEN w1.total > 0 THEN w2.total / w1.total END
ORDER BY s2.id, s2.first, s2.last, s2.email LIMIT 100
