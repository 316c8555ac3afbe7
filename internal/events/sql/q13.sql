SELECT count(*), count(DISTINCT user_id)
FROM events
WHERE url LIKE '%/product/%';
