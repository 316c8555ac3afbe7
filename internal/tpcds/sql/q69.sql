-- Kinds of people who bought in stores only.
SELECT cd_gender, cd_marital_status, cd_education_status, count(*) AS people, cd_purchase_estimate, cd_credit_rating FROM customer c, customer_address, customer_demographics
WHERE c.c_current_addr_sk = ca_address_sk AND ca_state IN ('[STATE1]', '[STATE2]', '[STATE3]', '[STATE4]', '[STATE5]') AND cd_demo_sk = c.c_current_cdemo_sk
  AND EXISTS (SELECT * FROM store_sales, date_dim WHERE c.c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk AND d_year = [YEAR] AND d_moy BETWEEN [EARLY] AND [EARLY] + 2)
  AND NOT EXISTS (SELECT * FROM web_sales, date_dim WHERE c.c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk AND d_year = [YEAR] AND d_moy BETWEEN [EARLY] AND [EARLY] + 2)
  AND NOT EXISTS (SELECT * FROM catalog_sales, date_dim WHERE c.c_customer_sk = cs_ship_customer_sk AND cs_sold_date_sk = d_date_sk AND d_year = [YEAR] AND d_moy BETWEEN [EARLY] AND [EARLY] + 2)
GROUP BY cd_gender, cd_marital_status, cd_education_status, cd_purchase_estimate, cd_credit_rating
ORDER BY cd_gender, cd_marital_status, cd_education_status, cd_purchase_estimate, cd_credit_rating LIMIT 100
