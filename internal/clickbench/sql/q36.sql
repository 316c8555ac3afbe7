-- Groups by expressions that one column decides.
SELECT ClientIP, ClientIP - 1 AS less_one, ClientIP - 2 AS less_two, ClientIP - 3 AS less_three, count(*) AS views
FROM hits GROUP BY ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3 ORDER BY views DESC, ClientIP LIMIT 10
