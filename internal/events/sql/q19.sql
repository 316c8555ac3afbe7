SELECT country, avg(latency), stddev_samp(latency), var_pop(amount), min(latency), max(latency)
FROM events
GROUP BY country
HAVING count(*) > {{share 1000}}
ORDER BY country;
