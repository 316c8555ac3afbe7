-- One site's titles of the most views.
SELECT Title, count(*) AS views FROM hits
WHERE CounterID = [COUNTER] AND EventDate BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND IsRefresh = 0 AND DontCountHits = 0 AND Title != ''
GROUP BY Title ORDER BY views DESC, Title LIMIT 10
