-- How long catalog orders take to be sent, by warehouse, way and call center.
SELECT substr(w_warehouse_name, 1, 20) AS warehouse, sm_type, cc_name, sum(CASE WHEN cs_ship_date_sk - cs_sold_date_sk <= 40 THEN 1 ELSE 0 END) AS days40,
  sum(CASE WHEN cs_ship_date_sk - cs_sold_date_sk > 40 AND cs_ship_date_sk - cs_sold_date_sk <= 80 THEN 1 ELSE 0 END) AS days80,
  sum(CASE WHEN cs_ship_date_sk - cs_sold_date_sk > 80 AND cs_ship_date_sk - cs_sold_date_sk <= 120 THEN 1 ELSE 0 END) AS days120,
  sum(CASE WHEN cs_ship_date_sk - cs_sold_date_sk > 120 THEN 1 ELSE 0 END) AS more
FROM catalog_sales, warehouse, ship_mode, call_center, date_dim
WHERE d_month_seq BETWEEN [MSEQ] AND [MSEQ] + 11 AND cs_ship_date_sk = d_date_sk AND cs_warehouse_sk = w_warehouse_sk AND cs_ship_mode_sk = sm_ship_mode_sk AND cs_call_center_sk = cc_call_center_sk
GROUP BY substr(w_warehouse_name, 1, 20), sm_type, cc_name ORDER BY warehouse, sm_type, cc_name LIMIT 100
