-- Averages over sales to three kinds of people at three groups of places.
SELECT avg(ss_quantity) AS quantity, avg(ss_ext_sales_price) AS price, avg(ss_ext_wholesale_cost) AS cost, sum(ss_ext_wholesale_cost) AS costs
FROM store_sales, store, customer_demographics, household_demographics, customer_address, date_dim
WHERE s_store_sk = ss_store_sk AND ss_sold_date_sk = d_date_sk AND d_year = [YEAR]
  AND ((ss_hdemo_sk = hd_demo_sk AND cd_demo_sk = ss_cdemo_sk AND cd_marital_status = '[MARITAL1]' AND cd_education_status = '[EDUCATION1]' AND ss_sales_price BETWEEN 100.00 AND 250.00 AND hd_dep_count > 2)
    OR (ss_hdemo_sk = hd_demo_sk AND cd_demo_sk = ss_cdemo_sk AND cd_marital_status = '[MARITAL2]' AND cd_education_status = '[EDUCATION2]' AND ss_sales_price BETWEEN 40.00 AND 120.00 AND hd_dep_count < 5)
    OR (ss_hdemo_sk = hd_demo_sk AND cd_demo_sk = ss_cdemo_sk AND cd_marital_status = '[MARITAL3]' AND cd_education_status = '[EDUCATION3]' AND ss_sales_price BETWEEN 1.00 AND 50.00 AND hd_dep_count > 4))
  AND ((ss_addr_sk = ca_address_sk AND ca_country = 'United States' AND ca_state IN ('[STATE1]', '[STATE2]', '[STATE3]') AND ss_net_profit > 0)
    OR (ss_addr_sk = ca_address_sk AND ca_country = 'United States' AND ca_state IN ('[STATE4]', '[STATE5]', '[STATE6]') AND ss_net_profit BETWEEN -3000 AND 0)
    OR (ss_addr_sk = ca_address_sk AND ca_country = 'United States' AND ca_state IN ('[STATE7]', '[STATE8]', '[STATE9]') AND ss_net_profit < 500))
