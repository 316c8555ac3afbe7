SELECT device,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY latency),
       percentile_cont(0.95) WITHIN GROUP (ORDER BY latency),
       percentile_cont(0.99) WITHIN GROUP (ORDER BY latency)
FROM events
GROUP BY device;
