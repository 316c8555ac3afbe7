-- Users and phrases of the most views.
SELECT UserID, SearchPhrase AS phrase, count(*) AS views
FROM hits GROUP BY UserID, SearchPhrase ORDER BY views DESC, UserID, phrase LIMIT 10
