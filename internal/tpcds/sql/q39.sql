-- Items whose stock varies much in two months that follow each other.
WITH stock AS (SELECT w_warehouse_sk AS warehouse, i_item_sk AS item, month, mean, CASE mean WHEN 0 THEN NULL ELSE deviation / mean END AS variation
  FROM (SELECT w_warehouse_name, w_warehouse_sk, i_item_sk, d_moy AS month, stddev_samp(inv_quantity_on_hand) AS deviation, avg(inv_quantity_on_hand) AS mean
    FROM inventory, item, warehouse, date_dim
    WHERE inv_item_sk = i_item_sk AND inv_warehouse_sk = w_warehouse_sk AND inv_date_sk = d_date_sk AND d_year = [YEAR]
    GROUP BY w_warehouse_name, w_warehouse_sk, i_item_sk, d_moy) x
  WHERE CASE mean WHEN 0 THEN 0 ELSE deviation / mean END > 1)
SELECT a.warehouse, a.item, a.month, a.mean, a.variation, b.month AS next_month, b.mean AS next_mean, b.variation AS next_variation
FROM stock a, stock b WHERE a.item = b.item AND a.warehouse = b.warehouse AND a.month = [EARLY] AND b.month = [EARLY] + 1
ORDER BY a.warehouse, a.item, a.mean, a.variation, b.mean, b.variation
