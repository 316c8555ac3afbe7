SELECT CASE WHEN bytes < 1000 THEN 'small' WHEN bytes < 100000 THEN 'medium' ELSE 'large' END AS size,
       extract(hour FROM ts) AS h, count(*), sum(amount)
FROM events
WHERE campaign IS NOT NULL
GROUP BY 1, 2
ORDER BY 1, 2;
