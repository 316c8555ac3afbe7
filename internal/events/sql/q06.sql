SELECT url, count(*) AS hits
FROM events
GROUP BY url
ORDER BY hits DESC, url
LIMIT 10;
