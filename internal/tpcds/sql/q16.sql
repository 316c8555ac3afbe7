-- Catalog orders of a state out of several warehouses that came back never.
SELECT count(DISTINCT cs_order_number) AS orders, sum(cs_ext_ship_cost) AS shipping, sum(cs_net_profit) AS profit
FROM catalog_sales one, date_dim, customer_address, call_center
WHERE d_date BETWEEN date '[DATE]' AND date '[DATE]' + 60 AND one.cs_ship_date_sk = d_date_sk AND one.cs_ship_addr_sk = ca_address_sk
  AND ca_state IN ('[STATE1]', '[STATE2]', '[STATE3]', '[STATE4]') AND one.cs_call_center_sk = cc_call_center_sk
  AND EXISTS (SELECT * FROM catalog_sales other WHERE one.cs_order_number = other.cs_order_number AND one.cs_warehouse_sk <> other.cs_warehouse_sk)
  AND NOT EXISTS (SELECT * FROM catalog_returns WHERE one.cs_order_number = cr_order_number)
ORDER BY count(DISTINCT cs_order_number) LIMIT 100
