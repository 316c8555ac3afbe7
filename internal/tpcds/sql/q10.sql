-- Kinds of people of some counties who bought in stores and by one of the other channels.
SELECT cd_gender, cd_marital_status, cd_education_status, cd_purchase_estimate, cd_credit_rating, cd_dep_count, count(*) AS people
FROM customer c, customer_address a, customer_demographics
WHERE c.c_current_addr_sk = a.ca_address_sk AND ca_county IN ('[COUNTY1]', '[COUNTY2]', '[COUNTY3]', '[COUNTY4]', '[COUNTY5]') AND cd_demo_sk = c.c_current_cdemo_sk
  AND EXISTS (SELECT 1 FROM store_sales, date_dim WHERE c.c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk AND d_year = [YEAR] AND d_moy BETWEEN [EARLY] AND [EARLY] + 5)
  AND (EXISTS (SELECT 1 FROM web_sales, date_dim WHERE c.c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk AND d_year = [YEAR] AND d_moy BETWEEN [EARLY] AND [EARLY] + 5)
    OR EXISTS (SELECT 1 FROM catalog_sales, date_dim WHERE c.c_customer_sk = cs_ship_customer_sk AND cs_sold_date_sk = d_date_sk AND d_year = [YEAR] AND d_moy BETWEEN [EARLY] AND [EARLY] + 5))
GROUP BY cd_gender, cd_marital_status, cd_education_status, cd_purchase_estimate, cd_credit_rating, cd_dep_count
ORDER BY cd_gender, cd_marital_status, cd_education_status, cd_purchase_estimate, cd_credit_rating, cd_dep_count LIMIT 100
