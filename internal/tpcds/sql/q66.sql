-- What warehouses send in each month, by web and catalog, of two carriers at some hours.
SELECT w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, carriers, year, sum(jan) AS jan, sum(feb) AS feb, sum(mar) AS mar, sum(nov) AS nov, sum(dec) AS dec,
  sum(jan / w_warehouse_sq_ft) AS jan_by_area, sum(dec / w_warehouse_sq_ft) AS dec_by_area, sum(jan_net) AS jan_net, sum(dec_net) AS dec_net
FROM (SELECT w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, '[CARRIER1]' || ',' || '[CARRIER2]' AS carriers, d_year AS year,
    sum(CASE WHEN d_moy = 1 THEN ws_ext_sales_price * ws_quantity ELSE 0 END) AS jan, sum(CASE WHEN d_moy = 2 THEN ws_ext_sales_price * ws_quantity ELSE 0 END) AS feb,
    sum(CASE WHEN d_moy = 3 THEN ws_ext_sales_price * ws_quantity ELSE 0 END) AS mar, sum(CASE WHEN d_moy = 11 THEN ws_ext_sales_price * ws_quantity ELSE 0 END) AS nov,
    sum(CASE WHEN d_moy = 12 THEN ws_ext_sales_price * ws_quantity ELSE 0 END) AS dec, sum(CASE WHEN d_moy = 1 THEN ws_net_paid * ws_quantity ELSE 0 END) AS jan_net,
    sum(CASE WHEN d_moy = 12 THEN ws_net_paid * ws_quantity ELSE 0 END) AS dec_net
  FROM web_sales, warehouse, date_dim, time_dim, ship_mode
  WHERE ws_warehouse_sk = w_warehouse_sk AND ws_sold_date_sk = d_date_sk AND ws_sold_time_sk = t_time_sk AND ws_ship_mode_sk = sm_ship_mode_sk AND d_year = [YEAR]
    AND t_time BETWEEN 30000 AND 30000 + 38800 AND sm_carrier IN ('[CARRIER1]', '[CARRIER2]')
  GROUP BY w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, d_year
  UNION ALL
  SELECT w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, '[CARRIER1]' || ',' || '[CARRIER2]', d_year,
    sum(CASE WHEN d_moy = 1 THEN cs_ext_list_price * cs_quantity ELSE 0 END), sum(CASE WHEN d_moy = 2 THEN cs_ext_list_price * cs_quantity ELSE 0 END),
    sum(CASE WHEN d_moy = 3 THEN cs_ext_list_price * cs_quantity ELSE 0 END), sum(CASE WHEN d_moy = 11 THEN cs_ext_list_price * cs_quantity ELSE 0 END),
    sum(CASE WHEN d_moy = 12 THEN cs_ext_list_price * cs_quantity ELSE 0 END), sum(CASE WHEN d_moy = 1 THEN cs_net_paid_inc_tax * cs_quantity ELSE 0 END),
    sum(CASE WHEN d_moy = 12 THEN cs_net_paid_inc_tax * cs_quantity ELSE 0 END)
  FROM catalog_sales, warehouse, date_dim, time_dim, ship_mode
  WHERE cs_warehouse_sk = w_warehouse_sk AND cs_sold_date_sk = d_date_sk AND cs_sold_time_sk = t_time_sk AND cs_ship_mode_sk = sm_ship_mode_sk AND d_year = [YEAR]
    AND t_time BETWEEN 30000 AND 30000 + 38800 AND sm_carrier IN ('[CARRIER1]', '[CARRIER2]')
  GROUP BY w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, d_year) x
GROUP BY w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, carriers, year ORDER BY w_warehouse_name, w_city LIMIT 100
