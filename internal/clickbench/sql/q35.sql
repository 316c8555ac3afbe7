-- The same, grouped by a constant besides.
SELECT 1 AS one, URL, count(*) AS views FROM hits GROUP BY one, URL ORDER BY views DESC, URL LIMIT 10
