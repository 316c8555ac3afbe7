-- Tickets of the first days of months bought in another city than that of the customer.
SELECT c_last_name, c_first_name, home.ca_city, bought_city, ticket, price, tax, list
FROM (SELECT ss_ticket_number AS ticket, ss_customer_sk AS customer, ca_city AS bought_city, sum(ss_ext_sales_price) AS price, sum(ss_ext_list_price) AS list, sum(ss_ext_tax) AS tax
  FROM store_sales, date_dim, store, household_demographics, customer_address
  WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND ss_hdemo_sk = hd_demo_sk AND ss_addr_sk = ca_address_sk AND d_dom BETWEEN 1 AND 4
    AND (hd_dep_count = [DEPENDENTS] OR hd_vehicle_count = [VEHICLES]) AND d_year IN ([YEAR] - 1, [YEAR], [YEAR] + 1) AND s_state IN ('[SHOPSTATE1]', '[SHOPSTATE2]', '[SHOPSTATE3]', '[SHOPSTATE4]')
  GROUP BY ss_ticket_number, ss_customer_sk, ss_addr_sk, ca_city) x, customer, customer_address home
WHERE customer = c_customer_sk AND c_current_addr_sk = home.ca_address_sk AND home.ca_city <> bought_city
ORDER BY c_last_name, ticket, c_first_name, home.ca_city, bought_city, price, tax, list LIMIT 100
