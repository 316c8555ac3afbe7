-- What is searched for most often, whichever of those that tie.
SELECT SearchPhrase AS phrase, count(*) AS views
FROM hits WHERE SearchPhrase != '' GROUP BY SearchPhrase ORDER BY views DESC LIMIT 10
