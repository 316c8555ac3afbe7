SELECT date_trunc('month', ts), count(DISTINCT user_id)
FROM events
GROUP BY 1
ORDER BY 1;
