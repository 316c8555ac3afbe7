-- How long things stay before they come back, by store.
SELECT s_store_name, s_store_id, s_street_number, s_street_name, s_city, s_county, s_state,
  sum(CASE WHEN sr_returned_date_sk - ss_sold_date_sk <= 30 THEN 1 ELSE 0 END) AS days30,
  sum(CASE WHEN sr_returned_date_sk - ss_sold_date_sk > 30 AND sr_returned_date_sk - ss_sold_date_sk <= 60 THEN 1 ELSE 0 END) AS days60,
  sum(CASE WHEN sr_returned_date_sk - ss_sold_date_sk > 60 AND sr_returned_date_sk - ss_sold_date_sk <= 80 THEN 1 ELSE 0 END) AS days80,
  sum(CASE WHEN sr_returned_date_sk - ss_sold_date_sk > 80 THEN 1 ELSE 0 END) AS more
FROM store_sales, store_returns, store, date_dim d1, date_dim d2
WHERE d2.d_year = [YEAR] AND d2.d_moy = [LATE] AND ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk AND ss_sold_date_sk = d1.d_date_sk
  AND sr_returned_date_sk = d2.d_date_sk AND ss_customer_sk = sr_customer_sk AND ss_store_sk = s_store_sk
GROUP BY s_store_name, s_store_id, s_street_number, s_street_name, s_city, s_county, s_state
ORDER BY s_store_name, s_store_id, s_street_number, s_street_name, s_city, s_county, s_state LIMIT 100
