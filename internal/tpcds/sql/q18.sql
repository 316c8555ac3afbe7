-- Averages of catalog sales to some people, by item and place, with sums.
SELECT i_item_id, ca_country, ca_state, ca_county, avg(cast(cs_quantity AS decimal(12,2))) AS quantity, avg(cast(cs_list_price AS decimal(12,2))) AS list_price,
  avg(cast(cs_coupon_amt AS decimal(12,2))) AS coupon, avg(cast(cs_net_profit AS decimal(12,2))) AS profit, avg(cast(c_birth_year AS decimal(12,2))) AS born, avg(cast(d1.cd_dep_count AS decimal(12,2))) AS dependents
FROM catalog_sales, customer_demographics d1, customer_demographics d2, customer, customer_address, date_dim, item
WHERE cs_sold_date_sk = d_date_sk AND cs_item_sk = i_item_sk AND cs_bill_cdemo_sk = d1.cd_demo_sk AND cs_bill_customer_sk = c_customer_sk
  AND d1.cd_gender = '[GENDER]' AND d1.cd_education_status = '[EDUCATION]' AND c_current_cdemo_sk = d2.cd_demo_sk AND c_current_addr_sk = ca_address_sk
  AND c_birth_month IN (1, 3, 4, 8, 10, 12) AND d_year = [YEAR] AND ca_state IN ('[STATE1]', '[STATE2]', '[STATE3]', '[STATE4]', '[STATE5]', '[STATE6]', '[STATE7]')
GROUP BY ROLLUP (i_item_id, ca_country, ca_state, ca_county) ORDER BY ca_country, ca_state, ca_county, i_item_id LIMIT 100
