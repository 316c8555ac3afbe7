-- What is searched for by the most users.
SELECT SearchPhrase AS phrase, count(DISTINCT UserID) AS users
FROM hits WHERE SearchPhrase != '' GROUP BY SearchPhrase ORDER BY users DESC, phrase LIMIT 10
