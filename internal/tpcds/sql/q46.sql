-- Tickets of weekends bought in another city than that of the customer.
SELECT c_last_name, c_first_name, home.ca_city, bought_city, ticket, amount, profit
FROM (SELECT ss_ticket_number AS ticket, ss_customer_sk AS customer, ca_city AS bought_city, sum(ss_coupon_amt) AS amount, sum(ss_net_profit) AS profit
  FROM store_sales, date_dim, store, household_demographics, customer_address
  WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND ss_hdemo_sk = hd_demo_sk AND ss_addr_sk = ca_address_sk
    AND (hd_dep_count = [DEPENDENTS] OR hd_vehicle_count = [VEHICLES]) AND d_dow IN (6, 0) AND d_year IN ([YEAR] - 1, [YEAR], [YEAR] + 1)
    AND s_state IN ('[SHOPSTATE1]', '[SHOPSTATE2]', '[SHOPSTATE3]', '[SHOPSTATE4]')
  GROUP BY ss_ticket_number, ss_customer_sk, ss_addr_sk, ca_city) x, customer, customer_address home
WHERE customer = c_customer_sk AND c_current_addr_sk = home.ca_address_sk AND home.ca_city <> bought_city
ORDER BY c_last_name, c_first_name, home.ca_city, bought_city, ticket, amount, profit LIMIT 100
