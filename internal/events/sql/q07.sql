SELECT user_id, sum(amount), count(*)
FROM events
GROUP BY user_id
ORDER BY 2 DESC NULLS LAST, 1
LIMIT 100;
