-- What is searched for most often.
SELECT SearchPhrase AS phrase, count(*) AS views
FROM hits WHERE SearchPhrase != '' GROUP BY SearchPhrase ORDER BY views DESC, phrase LIMIT 10
