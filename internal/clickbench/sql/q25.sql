-- The first phrases by time.
SELECT SearchPhrase AS phrase FROM hits WHERE SearchPhrase != '' ORDER BY EventTime, WatchID LIMIT 10
