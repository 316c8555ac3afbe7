-- Grafana: pgx, the simple protocol without transactions, macros already expanded to literals of RFC 3339.
--! protocol: simple
--! startup: TimeZone=UTC

-- time group
SELECT floor(extract(epoch from time)/300)*300 AS "time", avg(cpu) AS "cpu" FROM metrics WHERE time BETWEEN '2024-03-30T00:00:00Z' AND '2024-03-31T12:00:00Z' GROUP BY 1 ORDER BY 1

-- time group by host
SELECT floor(extract(epoch from time)/900)*900 AS "time", host AS metric, max(cpu) AS value FROM metrics WHERE time BETWEEN '2024-03-30T06:00:00Z' AND '2024-04-01T12:00:00Z' GROUP BY 1, 2 ORDER BY 1, 2

-- raw series
SELECT time AS "time", cpu FROM metrics WHERE host = 'host-1' AND time BETWEEN '2024-03-30T10:00:00Z' AND '2024-03-30T11:00:00Z' ORDER BY 1

-- raw series with epoch
SELECT extract(epoch from time) AS "time", host AS metric, cpu FROM metrics WHERE time BETWEEN '2024-03-30T10:00:00Z' AND '2024-03-30T11:00:00Z' ORDER BY 1, 2

-- builder
SELECT host, AVG(cpu) AS avg_cpu FROM metrics WHERE host IN ('host-1','host-2') GROUP BY host ORDER BY host LIMIT 50

-- by minute
SELECT date_trunc('minute', time) AS time, sum(cpu) AS v FROM metrics WHERE time >= '2024-03-31T00:30:00Z' AND time <= '2024-03-31T03:30:00Z' GROUP BY date_trunc('minute', time) ORDER BY 1

-- date_bin
SELECT date_bin('15 minutes', time, timestamptz '2001-01-01 00:00:00+00') AS time, avg(cpu) AS v FROM metrics GROUP BY 1 ORDER BY 1

-- unix epoch filter
SELECT extract(epoch from date_trunc('hour', time))::bigint AS time, avg(mem) AS mem FROM metrics WHERE extract(epoch from time) >= 1711756800 AND extract(epoch from time) <= 1711843200 GROUP BY 1 ORDER BY 1

-- epoch in ms
SELECT (extract(epoch from time) * 1000)::bigint AS ms, cpu FROM metrics WHERE host = 'host-2' AND cpu > 99 ORDER BY 1

-- last 6 hours
SELECT host, count(*) FROM metrics WHERE time > now() - interval '6 hours' GROUP BY host ORDER BY host

-- stat panel
SELECT date_trunc('year', now()) AS time, count(*) AS value FROM events WHERE kind = 'signup'

-- last value of each host
SELECT DISTINCT ON (host) host, time, cpu FROM metrics ORDER BY host, time DESC

-- variable
SELECT DISTINCT host FROM metrics ORDER BY 1

-- variable with text and value
SELECT name AS __text, id AS __value FROM customers WHERE country = 'DE' ORDER BY name, id

-- multi value regexp
SELECT count(*) FROM metrics WHERE host ~ '^(host-1|host-3)$'

-- rate
SELECT time, host, mem - lag(mem) OVER (PARTITION BY host ORDER BY time) AS delta FROM metrics WHERE time BETWEEN '2024-03-31T00:00:00Z' AND '2024-03-31T01:00:00Z' ORDER BY time, host

-- percentile
SELECT floor(extract(epoch from at)/86400)*86400 AS time, percentile_cont(0.95) WITHIN GROUP (ORDER BY duration_ms) AS p95 FROM events WHERE at BETWEEN '2023-02-01T00:00:00Z' AND '2023-03-01T00:00:00Z' GROUP BY 1 ORDER BY 1

-- concatenated metric
SELECT date_trunc('day', at) AS time, concat(kind, ' ', path) AS metric, count(*) AS value FROM events WHERE at BETWEEN '2023-02-01T00:00:00Z' AND '2023-03-01T00:00:00Z' GROUP BY 1, 2 ORDER BY 1, 2

-- annotations
SELECT extract(epoch from at) AS time, path AS text, kind AS tags FROM events WHERE kind = 'purchase' AND at BETWEEN '2023-02-01T00:00:00Z' AND '2023-03-01T00:00:00Z' ORDER BY 1

-- fill with calendar
SELECT g.t AS time, coalesce(count(e.id), 0) AS n FROM generate_series('2023-02-01T00:00:00Z'::timestamptz, '2023-02-05T00:00:00Z'::timestamptz, interval '1 hour') AS g(t) LEFT JOIN events e ON date_trunc('hour', e.at) = g.t GROUP BY g.t ORDER BY g.t

-- json field
SELECT payload->>'browser' AS metric, count(*) AS value FROM events GROUP BY 1 ORDER BY 1

-- week over week
SELECT date_trunc('week', at) AS time, count(*) AS n, lag(count(*)) OVER (ORDER BY date_trunc('week', at)) AS before FROM events GROUP BY 1 ORDER BY 1

-- logs
SELECT at AS time, path AS message, kind AS level FROM events WHERE path LIKE '/docs%' AND at BETWEEN '2023-02-01T00:00:00Z' AND '2023-02-08T00:00:00Z' ORDER BY at DESC LIMIT 1000
