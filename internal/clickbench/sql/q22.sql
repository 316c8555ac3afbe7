-- What is searched for, of addresses that have a word.
SELECT SearchPhrase AS phrase, min(URL) AS first_url, count(*) AS views
FROM hits WHERE SearchPhrase != '' AND URL LIKE '%google%' GROUP BY SearchPhrase ORDER BY views DESC, phrase LIMIT 10
