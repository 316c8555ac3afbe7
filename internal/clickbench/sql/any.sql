-- Any users and phrases with their views.
SELECT UserID, SearchPhrase AS phrase, count(*) AS views FROM hits GROUP BY UserID, SearchPhrase LIMIT 10
