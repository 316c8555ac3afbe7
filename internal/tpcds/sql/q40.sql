-- What catalog sales of a state's warehouses brought before and after a day, less what was paid back.
SELECT w_state, i_item_id, sum(CASE WHEN d_date < date '[DATE]' THEN cs_sales_price - coalesce(cr_refunded_cash, 0) ELSE 0 END) AS before,
  sum(CASE WHEN d_date >= date '[DATE]' THEN cs_sales_price - coalesce(cr_refunded_cash, 0) ELSE 0 END) AS after
FROM catalog_sales LEFT OUTER JOIN catalog_returns ON cs_order_number = cr_order_number AND cs_item_sk = cr_item_sk, warehouse, item, date_dim
WHERE i_current_price BETWEEN [PRICE] AND [PRICE] + 20 AND i_item_sk = cs_item_sk AND cs_warehouse_sk = w_warehouse_sk AND cs_sold_date_sk = d_date_sk
  AND d_date BETWEEN date '[DATE]' - interval '30 days' AND date '[DATE]' + interval '30 days'
GROUP BY w_state, i_item_id ORDER BY w_state, i_item_id LIMIT 100
