SELECT country, count(*)
FROM events
WHERE url ILIKE '%checkout%' AND NOT converted
GROUP BY country
ORDER BY 2 DESC, 1
LIMIT 20;
