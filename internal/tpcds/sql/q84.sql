-- Customers of a city with an income of some band who brought something back.
SELECT c_customer_id AS id, coalesce(c_last_name, '') || ', ' || coalesce(c_first_name, '') AS name
FROM customer, customer_address, customer_demographics, household_demographics, income_band, store_returns
WHERE ca_city IN ('[CITY1]', '[CITY2]', '[CITY3]') AND c_current_addr_sk = ca_address_sk AND ib_lower_bound >= [PRICE] * 1000 AND ib_upper_bound <= [PRICE] * 1000 + 120000
  AND ib_income_band_sk = hd_income_band_sk AND cd_demo_sk = c_current_cdemo_sk AND hd_demo_sk = c_current_hdemo_sk AND sr_customer_sk = c_customer_sk
ORDER BY c_customer_id, name LIMIT 100
