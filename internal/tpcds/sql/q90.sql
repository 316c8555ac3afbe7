-- Web sales of a morning's hours against those of an evening's.
SELECT cast(am AS decimal(15,4)) / cast(nullif(pm, 0) AS decimal(15,4)) AS ratio
FROM (SELECT count(*) AS am FROM web_sales, household_demographics, time_dim, web_page WHERE ws_sold_time_sk = t_time_sk AND ws_ship_hdemo_sk = hd_demo_sk AND ws_web_page_sk = wp_web_page_sk
    AND t_hour BETWEEN 9 AND 11 AND hd_dep_count = [DEPENDENTS] AND wp_char_count BETWEEN 1000 AND 7000) morning,
  (SELECT count(*) AS pm FROM web_sales, household_demographics, time_dim, web_page WHERE ws_sold_time_sk = t_time_sk AND ws_ship_hdemo_sk = hd_demo_sk AND ws_web_page_sk = wp_web_page_sk
    AND t_hour BETWEEN 17 AND 19 AND hd_dep_count = [DEPENDENTS] AND wp_char_count BETWEEN 1000 AND 7000) evening
ORDER BY ratio LIMIT 100
