-- All columns of the first rows whose addresses have a word.
SELECT * FROM hits WHERE URL LIKE '%google%' ORDER BY EventTime, WatchID LIMIT 10
