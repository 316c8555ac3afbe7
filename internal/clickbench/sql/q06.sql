-- Different phrases that were searched for.
SELECT count(DISTINCT SearchPhrase) AS phrases FROM hits
