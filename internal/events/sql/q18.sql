SELECT date_trunc('week', ts), count(*) FILTER (WHERE converted), count(*), sum(amount) FILTER (WHERE converted)
FROM events
WHERE device IN ('mobile', 'tablet')
GROUP BY 1
ORDER BY 1;
