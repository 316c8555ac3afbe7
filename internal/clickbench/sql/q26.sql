-- The first phrases by their letters.
SELECT SearchPhrase AS phrase FROM hits WHERE SearchPhrase != '' ORDER BY phrase LIMIT 10
