-- Customers with large tickets at the turn of the month, of households with many dependents a car.
SELECT c_last_name, c_first_name, c_salutation, c_preferred_cust_flag, ticket, lines
FROM (SELECT ss_ticket_number AS ticket, ss_customer_sk AS customer, count(*) AS lines FROM store_sales, date_dim, store, household_demographics
  WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND ss_hdemo_sk = hd_demo_sk AND (d_dom BETWEEN 1 AND 5 OR d_dom BETWEEN 24 AND 28)
    AND (hd_buy_potential = '[POTENTIAL1]' OR hd_buy_potential = '[POTENTIAL2]') AND hd_vehicle_count > 0
    AND CASE WHEN hd_vehicle_count > 0 THEN cast(hd_dep_count AS decimal(7,2)) / hd_vehicle_count END > 1.2
    AND d_year IN ([YEAR] - 1, [YEAR], [YEAR] + 1) AND s_state IN ('[SHOPSTATE1]', '[SHOPSTATE2]', '[SHOPSTATE3]', '[SHOPSTATE4]')
  GROUP BY ss_ticket_number, ss_customer_sk) x, customer
WHERE customer = c_customer_sk AND lines BETWEEN 12 AND 20
ORDER BY c_last_name, c_first_name, c_salutation, c_preferred_cust_flag DESC, ticket
