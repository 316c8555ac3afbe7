-- A later page of one site's links.
SELECT URL, count(*) AS views FROM hits
WHERE CounterID = [COUNTER] AND EventDate BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND IsRefresh = 0 AND IsDownload = 0 AND IsLink != 0
GROUP BY URL ORDER BY views DESC, URL LIMIT 10 OFFSET [LINKS]
