-- Customers of a state whose catalog returns are far above what is usual where they live.
WITH returned AS (SELECT cr_returning_customer_sk AS customer, ca_state AS state, sum(cr_return_amt_inc_tax) AS amount
  FROM catalog_returns, date_dim, customer_address WHERE cr_returned_date_sk = d_date_sk AND d_year = [YEAR] AND cr_returning_addr_sk = ca_address_sk
  GROUP BY cr_returning_customer_sk, ca_state)
SELECT c_customer_id, c_salutation, c_first_name, c_last_name, ca_street_number, ca_street_name, ca_street_type, ca_suite_number, ca_city, ca_county, ca_state, ca_zip, ca_gmt_offset, r.amount
FROM returned r, customer_address, customer
WHERE r.amount > (SELECT avg(o.amount) * 1.2 FROM returned o WHERE r.state = o.state)
  AND ca_address_sk = c_current_addr_sk AND ca_state IN ('[STATE1]', '[STATE2]', '[STATE3]', '[STATE4]') AND r.customer = c_customer_sk
ORDER BY c_customer_id, c_salutation, c_first_name, c_last_name, ca_street_number, r.amount LIMIT 100
