SELECT date_trunc('day', ts) AS time, count(*)
FROM events
WHERE ts >= '2025-04-01 00:00:00+00' AND ts < '2025-07-01 00:00:00+00'
GROUP BY 1
ORDER BY 1;
