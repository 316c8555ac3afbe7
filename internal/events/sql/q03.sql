SELECT date_trunc('hour', ts), device, count(*), sum(amount), avg(amount)
FROM events
WHERE ts BETWEEN '2025-03-01 00:00:00+00' AND '2025-03-31 23:59:59.999+00'
GROUP BY 1, 2
ORDER BY 1, 2;
