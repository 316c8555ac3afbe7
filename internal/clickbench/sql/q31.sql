-- Clients that search, by engine.
SELECT SearchEngineID AS engine, ClientIP, count(*) AS views, sum(IsRefresh) AS refreshed, avg(ResolutionWidth) AS width
FROM hits WHERE SearchPhrase != '' GROUP BY SearchEngineID, ClientIP ORDER BY views DESC, engine, ClientIP LIMIT 10
