SELECT count(*), sum(amount), avg(latency), max(bytes)
FROM events;
