-- Dependents of people who bought in stores and by one of the other channels.
SELECT ca_state, cd_gender, cd_marital_status, cd_dep_count, count(*) AS people, min(cd_dep_count) AS least, max(cd_dep_count) AS most, avg(cd_dep_count) AS mean,
  cd_dep_employed_count, sum(cd_dep_employed_count) AS employed, cd_dep_college_count, sum(cd_dep_college_count) AS college
FROM customer c, customer_address, customer_demographics
WHERE c.c_current_addr_sk = ca_address_sk AND cd_demo_sk = c.c_current_cdemo_sk
  AND EXISTS (SELECT * FROM store_sales, date_dim WHERE c.c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk AND d_year = [YEAR] AND d_qoy < 4)
  AND (EXISTS (SELECT * FROM web_sales, date_dim WHERE c.c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk AND d_year = [YEAR] AND d_qoy < 4)
    OR EXISTS (SELECT * FROM catalog_sales, date_dim WHERE c.c_customer_sk = cs_ship_customer_sk AND cs_sold_date_sk = d_date_sk AND d_year = [YEAR] AND d_qoy < 4))
GROUP BY ca_state, cd_gender, cd_marital_status, cd_dep_count, cd_dep_employed_count, cd_dep_college_count
ORDER BY ca_state, cd_gender, cd_marital_status, cd_dep_count, cd_dep_employed_count, cd_dep_college_count LIMIT 100
