-- Web orders of a state out of several warehouses that came back never.
SELECT count(DISTINCT ws_order_number) AS orders, sum(ws_ext_ship_cost) AS shipping, sum(ws_net_profit) AS profit FROM web_sales one, date_dim, customer_address, web_site
WHERE d_date BETWEEN date '[DATE]' AND date '[DATE]' + 60 AND one.ws_ship_date_sk = d_date_sk AND one.ws_ship_addr_sk = ca_address_sk AND ca_state IN ('[STATE1]', '[STATE2]', '[STATE3]', '[STATE4]')
  AND one.ws_web_site_sk = web_site_sk AND web_company_name IN ('able', 'bold', 'calm')
  AND EXISTS (SELECT * FROM web_sales other WHERE one.ws_order_number = other.ws_order_number AND one.ws_warehouse_sk <> other.ws_warehouse_sk)
  AND NOT EXISTS (SELECT * FROM web_returns WHERE one.ws_order_number = wr_order_number)
ORDER BY count(DISTINCT ws_order_number) LIMIT 100
