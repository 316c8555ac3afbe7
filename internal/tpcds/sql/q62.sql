-- How long web orders take to be sent, by warehouse, way and site.
SELECT substr(w_warehouse_name, 1, 20) AS warehouse, sm_type, web_name, sum(CASE WHEN ws_ship_date_sk - ws_sold_date_sk <= 30 THEN 1 ELSE 0 END) AS days30,
  sum(CASE WHEN ws_ship_date_sk - ws_sold_date_sk > 30 AND ws_ship_date_sk - ws_sold_date_sk <= 60 THEN 1 ELSE 0 END) AS days60,
  sum(CASE WHEN ws_ship_date_sk - ws_sold_date_sk > 60 AND ws_ship_date_sk - ws_sold_date_sk <= 90 THEN 1 ELSE 0 END) AS days90,
  sum(CASE WHEN ws_ship_date_sk - ws_sold_date_sk > 90 THEN 1 ELSE 0 END) AS more
FROM web_sales, warehouse, ship_mode, web_site, date_dim
WHERE d_month_seq BETWEEN [MSEQ] AND [MSEQ] + 11 AND ws_ship_date_sk = d_date_sk AND ws_warehouse_sk = w_warehouse_sk AND ws_ship_mode_sk = sm_ship_mode_sk AND ws_web_site_sk = web_site_sk
GROUP BY substr(w_warehouse_name, 1, 20), sm_type, web_name ORDER BY warehouse, sm_type, web_name LIMIT 100
