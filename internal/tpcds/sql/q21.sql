-- Stock of items of some price before and after a day.
SELECT * FROM (SELECT w_warehouse_name, i_item_id, sum(CASE WHEN d_date < date '[DATE]' THEN inv_quantity_on_hand ELSE 0 END) AS before,
    sum(CASE WHEN d_date >= date '[DATE]' THEN inv_quantity_on_hand ELSE 0 END) AS after
  FROM inventory, warehouse, item, date_dim
  WHERE i_current_price BETWEEN [PRICE] AND [PRICE] + 5 AND i_item_sk = inv_item_sk AND inv_warehouse_sk = w_warehouse_sk AND inv_date_sk = d_date_sk
    AND d_date BETWEEN date '[DATE]' - 30 AND date '[DATE]' + 30
  GROUP BY w_warehouse_name, i_item_id) x
WHERE CASE WHEN before > 0 THEN cast(after AS decimal(15,2)) / before END BETWEEN 2.0 / 3.0 AND 3.0 / 2.0
ORDER BY w_warehouse_name, i_item_id LIMIT 100
