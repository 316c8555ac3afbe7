SELECT id, ts, url, amount
FROM events
WHERE user_id = 4242 AND ts >= '2025-06-01 00:00:00+00'
ORDER BY ts DESC, id
LIMIT 50;
