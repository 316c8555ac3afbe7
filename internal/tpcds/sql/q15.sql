-- Catalog sales to zip codes, for some prefixes, states or dear items.
SELECT ca_zip, sum(cs_sales_price) AS sales FROM catalog_sales, customer, customer_address, date_dim
WHERE cs_bill_customer_sk = c_customer_sk AND c_current_addr_sk = ca_address_sk
  AND (substr(ca_zip, 1, 3) IN ('100', '117', '134', '151', '168', '185', '202', '219') OR ca_state IN ('[STATE1]', '[STATE2]', '[STATE3]') OR cs_sales_price > 200)
  AND cs_sold_date_sk = d_date_sk AND d_qoy = [QUARTER] AND d_year = [YEAR]
GROUP BY ca_zip ORDER BY ca_zip LIMIT 100
