-- Some users and phrases with their views.
SELECT UserID, SearchPhrase AS phrase, count(*) AS views
FROM hits GROUP BY UserID, SearchPhrase ORDER BY UserID, phrase LIMIT 10
