-- Customers of a state's stores whose returns are far above what is usual at the store.
WITH returned AS (SELECT sr_customer_sk AS customer, sr_store_sk AS shop, sum(sr_return_amt) AS amount
  FROM store_returns JOIN date_dim ON sr_returned_date_sk = d_date_sk WHERE d_year = [YEAR] GROUP BY sr_customer_sk, sr_store_sk)
SELECT c_customer_id, c_last_name FROM returned r, store, customer
WHERE r.amount > (SELECT 1.2 * avg(o.amount) FROM returned o WHERE o.shop = r.shop)
  AND s_store_sk = r.shop AND s_state IN ('[SHOPSTATE1]', '[SHOPSTATE2]', '[SHOPSTATE3]') AND c_customer_sk = r.customer
ORDER BY c_customer_id, c_last_name LIMIT 100
