SELECT country, device, count(*), sum(amount)
FROM events
GROUP BY ROLLUP (country, device)
ORDER BY 1 NULLS LAST, 2 NULLS LAST, 3;
