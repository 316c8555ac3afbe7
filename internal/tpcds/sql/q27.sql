-- Averages of items by state, with sums that say what they are of.
SELECT i_item_id, s_state, grouping(s_state) AS all_states, avg(ss_quantity) AS quantity, avg(ss_list_price) AS list_price, avg(ss_coupon_amt) AS coupon, avg(ss_sales_price) AS price
FROM store_sales, customer_demographics, date_dim, store, item
WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND ss_store_sk = s_store_sk AND ss_cdemo_sk = cd_demo_sk
  AND cd_gender = '[GENDER]' AND cd_marital_status = '[MARITAL]' AND cd_education_status = '[EDUCATION]' AND d_year = [YEAR]
  AND s_state IN ('[SHOPSTATE1]', '[SHOPSTATE2]', '[SHOPSTATE3]', '[SHOPSTATE4]', '[SHOPSTATE5]', '[SHOPSTATE6]')
GROUP BY ROLLUP (i_item_id, s_state) ORDER BY i_item_id, s_state LIMIT 100
