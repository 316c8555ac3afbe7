-- Users and phrases by minute of the hour.
SELECT UserID, extract(minute FROM EventTime) AS at_minute, SearchPhrase AS phrase, count(*) AS views
FROM hits GROUP BY UserID, at_minute, SearchPhrase ORDER BY views DESC, UserID, at_minute, phrase LIMIT 10
