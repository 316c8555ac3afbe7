-- What was bought in a store, brought back and then ordered by catalog: counts, means, deviations.
SELECT i_item_id, i_item_desc, s_state, count(ss_quantity) AS sold, avg(ss_quantity) AS sold_mean, stddev_samp(ss_quantity) AS sold_deviation,
  count(sr_return_quantity) AS back, avg(sr_return_quantity) AS back_mean, stddev_samp(sr_return_quantity) AS back_deviation,
  count(cs_quantity) AS ordered, avg(cs_quantity) AS ordered_mean, stddev_samp(cs_quantity) / nullif(avg(cs_quantity), 0) AS ordered_variation
FROM store_sales, store_returns, catalog_sales, date_dim d1, date_dim d2, date_dim d3, store, item
WHERE d1.d_quarter_name IN ('[YEAR]Q1', '[YEAR]Q4') AND d1.d_date_sk = ss_sold_date_sk AND i_item_sk = ss_item_sk AND s_store_sk = ss_store_sk AND ss_customer_sk = sr_customer_sk
  AND ss_item_sk = sr_item_sk AND ss_ticket_number = sr_ticket_number AND sr_returned_date_sk = d2.d_date_sk AND d2.d_year BETWEEN [YEAR] AND [YEAR] + 1
  AND sr_customer_sk = cs_bill_customer_sk AND sr_item_sk = cs_item_sk AND cs_sold_date_sk = d3.d_date_sk AND d3.d_year BETWEEN [YEAR] AND [YEAR] + 1
GROUP BY i_item_id, i_item_desc, s_state ORDER BY i_item_id, i_item_desc, s_state LIMIT 100
