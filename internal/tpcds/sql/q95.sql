-- Web orders of a state out of several warehouses of which something came back.
WITH several AS (SELECT a.ws_order_number AS number, a.ws_warehouse_sk AS w1, b.ws_warehouse_sk AS w2 FROM web_sales a, web_sales b WHERE a.ws_order_number = b.ws_order_number AND a.ws_warehouse_sk <> b.ws_warehouse_sk)
SELECT count(DISTINCT ws_order_number) AS orders, sum(ws_ext_ship_cost) AS shipping, sum(ws_net_profit) AS profit FROM web_sales one, date_dim, customer_address, web_site
WHERE d_date BETWEEN date '[DATE]' AND date '[DATE]' + 60 AND one.ws_ship_date_sk = d_date_sk AND one.ws_ship_addr_sk = ca_address_sk AND ca_state IN ('[STATE1]', '[STATE2]', '[STATE3]', '[STATE4]')
  AND one.ws_web_site_sk = web_site_sk AND web_company_name IN ('able', 'bold', 'calm')
  AND one.ws_order_number IN (SELECT number FROM several) AND one.ws_order_number IN (SELECT wr_order_number FROM web_returns, several WHERE wr_order_number = several.number)
ORDER BY count(DISTINCT ws_order_number) LIMIT 100
