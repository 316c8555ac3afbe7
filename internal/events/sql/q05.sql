SELECT country, sum(amount) AS revenue, count(*)
FROM events
WHERE country IS NOT NULL
GROUP BY country
ORDER BY revenue DESC
LIMIT 10;
