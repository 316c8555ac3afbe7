-- As many groups as there are rows with phrases.
SELECT WatchID, ClientIP, count(*) AS views, sum(IsRefresh) AS refreshed, avg(ResolutionWidth) AS width
FROM hits WHERE SearchPhrase != '' GROUP BY WatchID, ClientIP ORDER BY views DESC, WatchID, ClientIP LIMIT 10
