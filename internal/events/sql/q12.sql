SELECT date_trunc('month', ts), percentile_disc(0.9) WITHIN GROUP (ORDER BY amount)
FROM events
GROUP BY 1
ORDER BY 1;
