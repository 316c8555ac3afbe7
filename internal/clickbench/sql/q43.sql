-- One site's views by minute.
SELECT date_trunc('minute', EventTime) AS at_minute, count(*) AS views FROM hits
WHERE CounterID = [COUNTER] AND EventDate BETWEEN DATE '2013-07-14' AND DATE '2013-07-15' AND IsRefresh = 0 AND DontCountHits = 0
GROUP BY at_minute ORDER BY at_minute LIMIT 10 OFFSET [LINKS]
