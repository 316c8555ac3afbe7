-- What is searched for, of titles that have a word and addresses that do not.
SELECT SearchPhrase AS phrase, min(URL) AS first_url, min(Title) AS first_title, count(*) AS views, count(DISTINCT UserID) AS users
FROM hits WHERE SearchPhrase != '' AND Title LIKE '%Google%' AND URL NOT LIKE '%.google.%'
GROUP BY SearchPhrase ORDER BY views DESC, phrase LIMIT 10
