-- Counters of the longest addresses.
SELECT CounterID, avg(length(URL)) AS letters, count(*) AS views
FROM hits WHERE URL != '' GROUP BY CounterID HAVING count(*) > [MANY] ORDER BY letters DESC, CounterID LIMIT 25
