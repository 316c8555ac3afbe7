-- Web sales by city, to some zip codes or of some items.
SELECT ca_zip, ca_city, sum(ws_sales_price) AS sales FROM web_sales, customer, customer_address, date_dim, item
WHERE ws_bill_customer_sk = c_customer_sk AND c_current_addr_sk = ca_address_sk AND ws_item_sk = i_item_sk
  AND (substr(ca_zip, 1, 2) IN ('10', '11', '13', '15', '17', '18', '20', '22', '25') OR i_item_id IN (SELECT i_item_id FROM item WHERE i_item_sk IN (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)))
  AND ws_sold_date_sk = d_date_sk AND d_qoy = [QUARTER] AND d_year = [YEAR]
GROUP BY ca_zip, ca_city ORDER BY ca_zip, ca_city LIMIT 100
