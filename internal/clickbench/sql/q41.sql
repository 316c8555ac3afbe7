-- What one referring address leads to, by day.
SELECT URLHash, EventDate, count(*) AS views FROM hits
WHERE CounterID = [COUNTER] AND EventDate BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND IsRefresh = 0 AND TraficSourceID IN (-1, 6) AND RefererHash = [REFERER]
GROUP BY URLHash, EventDate ORDER BY views DESC, URLHash, EventDate LIMIT 10 OFFSET [LINKS]
