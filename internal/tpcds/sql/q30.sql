-- Customers of a state whose web returns are far above what is usual where they live.
WITH returned AS (SELECT wr_returning_customer_sk AS customer, ca_state AS state, sum(wr_return_amt) AS amount
  FROM web_returns, date_dim, customer_address WHERE wr_returned_date_sk = d_date_sk AND d_year = [YEAR] AND wr_returning_addr_sk = ca_address_sk
  GROUP BY wr_returning_customer_sk, ca_state)
SELECT c_customer_id, c_salutation, c_first_name, c_last_name, c_preferred_cust_flag, c_birth_day, c_birth_month, c_birth_year, c_email_address, r.amount
FROM returned r, customer_address, customer
WHERE r.amount > (SELECT avg(o.amount) * 1.2 FROM returned o WHERE r.state = o.state)
  AND ca_address_sk = c_current_addr_sk AND ca_state IN ('[STATE1]', '[STATE2]', '[STATE3]', '[STATE4]') AND r.customer = c_customer_sk
ORDER BY c_customer_id, r.amount, c_salutation LIMIT 100
