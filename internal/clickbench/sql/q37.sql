-- One site's addresses of the most views.
SELECT URL, count(*) AS views FROM hits
WHERE CounterID = [COUNTER] AND EventDate BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND IsRefresh = 0 AND DontCountHits = 0 AND URL != ''
GROUP BY URL ORDER BY views DESC, URL LIMIT 10
