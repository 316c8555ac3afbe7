-- Sizes of windows on one address.
SELECT WindowClientWidth AS width, WindowClientHeight AS height, count(*) AS views FROM hits
WHERE CounterID = [COUNTER] AND EventDate BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND IsRefresh = 0 AND DontCountHits = 0 AND URLHash = [URL]
GROUP BY WindowClientWidth, WindowClientHeight ORDER BY views DESC, width, height LIMIT 10 OFFSET [LINKS]
