-- A later page of where one site's visitors come from.
SELECT TraficSourceID, SearchEngineID, AdvEngineID,
  CASE WHEN SearchEngineID = 0 AND AdvEngineID = 0 THEN Referer ELSE '' END AS source, URL AS target, count(*) AS views
FROM hits WHERE CounterID = [COUNTER] AND EventDate BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND IsRefresh = 0
GROUP BY TraficSourceID, SearchEngineID, AdvEngineID, source, target
ORDER BY views DESC, TraficSourceID, SearchEngineID, AdvEngineID, source, target LIMIT 10 OFFSET [SKIP]
