SELECT status, count(*)
FROM events
WHERE ts >= '2025-09-17 14:00:00+00' AND ts < '{{after "2025-09-17 14:00" "5m"}}'
GROUP BY status
ORDER BY status;
