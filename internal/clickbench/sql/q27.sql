-- The first phrases by time and their letters.
SELECT SearchPhrase AS phrase FROM hits WHERE SearchPhrase != '' ORDER BY EventTime, phrase LIMIT 10
