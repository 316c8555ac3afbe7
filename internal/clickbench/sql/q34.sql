-- Addresses of the most views.
SELECT URL, count(*) AS views FROM hits GROUP BY URL ORDER BY views DESC, URL LIMIT 10
