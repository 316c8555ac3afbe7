-- What is searched for most often, by search engine.
SELECT SearchEngineID AS engine, SearchPhrase AS phrase, count(*) AS views
FROM hits WHERE SearchPhrase != '' GROUP BY SearchEngineID, SearchPhrase ORDER BY views DESC, engine, phrase LIMIT 10
