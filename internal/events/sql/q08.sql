SELECT count(DISTINCT user_id), count(DISTINCT url)
FROM events
WHERE status = 200;
