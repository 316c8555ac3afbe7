-- Profit of stores near zip codes of many preferred customers.
SELECT s_store_name, sum(ss_net_profit) AS profit FROM store_sales, date_dim, store,
  (SELECT zip FROM (SELECT substring(ca_zip, 1, 5) AS zip FROM customer_address WHERE substring(ca_zip, 1, 2) IN ('10', '11', '13', '15', '17', '18', '20', '22')
    INTERSECT
    SELECT zip FROM (SELECT substring(ca_zip, 1, 5) AS zip, count(*) AS people FROM customer_address, customer
      WHERE ca_address_sk = c_current_addr_sk AND c_preferred_cust_flag = 'Y' GROUP BY ca_zip HAVING count(*) > 1) many) both_lists) near
WHERE ss_store_sk = s_store_sk AND ss_sold_date_sk = d_date_sk AND d_qoy = [QUARTER] AND d_year = [YEAR] AND substring(s_zip, 1, 2) = substring(near.zip, 1, 2)
GROUP BY s_store_name ORDER BY s_store_name LIMIT 100
