-- Customers whose yearly most on the web grows more than in stores.
WITH totals AS (SELECT c_customer_id AS id, c_first_name AS first, c_last_name AS last, d_year AS year, max(ss_net_paid) AS total, 's' AS kind FROM customer, store_sales, date_dim
  WHERE c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk AND d_year IN ([YEAR], [YEAR] + 1) GROUP BY c_customer_id, c_first_name, c_last_name, d_year
  UNION ALL SELECT c_customer_id, c_first_name, c_last_name, d_year, max(ws_net_paid), 'w' FROM customer, web_sales, date_dim
  WHERE c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk AND d_year IN ([YEAR], [YEAR] + 1) GROUP BY c_customer_id, c_first_name, c_last_name, d_year)
SELECT s2.id, s2.first, s2.last FROM totals s1, totals s2, totals w1, totals w2
WHERE s2.id = s1.id AND s1.id = w2.id AND s1.id = w1.id AND s1.kind = 's' AND w1.kind = 'w' AND s2.kind = 's' AND w2.kind = 'w'
  AND s1.year = [YEAR] AND s2.year = [YEAR] + 1 AND w1.year = [YEAR] AND w2.year = [YEAR] + 1 AND s1.total > 0 AND w1.total > 0
  AND CASE WHEN w1.total > 0 THEN w2.total / w1.total END > CASE WHEN s1.total > 0 THEN s2.total / s1.total END
ORDER BY s2.first, s2.id, s2.last LIMIT 100
