-- Sales of half an hour to households with some dependents.
SELECT count(*) AS sales FROM store_sales, household_demographics, time_dim, store
WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = [HOUR] AND t_minute >= 30 AND hd_dep_count = [DEPENDENTS] AND s_store_name = 'calm'
ORDER BY count(*) LIMIT 100
