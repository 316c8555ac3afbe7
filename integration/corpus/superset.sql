-- Superset: SQLAlchemy on psycopg2, literals in the text, a transaction around each query, virtual tables for datasets.
--! protocol: simple
--! startup: TimeZone=UTC
--! session: set search_path = "public"
--! session: BEGIN

-- timeseries by day
SELECT DATE_TRUNC('day', placed_at) AS __timestamp, channel AS channel, SUM(total) AS "SUM(total)" FROM public.orders WHERE placed_at >= TO_TIMESTAMP('2023-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND placed_at < TO_TIMESTAMP('2023-07-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('day', placed_at), channel ORDER BY __timestamp, channel LIMIT 50000

-- virtual dataset
SELECT channel AS channel, COUNT(*) AS count FROM (SELECT * FROM orders) AS virtual_table GROUP BY channel ORDER BY count DESC, channel LIMIT 1000

-- narrow virtual dataset
SELECT channel AS channel, COUNT(*) AS count FROM (SELECT id, channel, total FROM orders WHERE total > 10
) AS virtual_table GROUP BY channel ORDER BY count DESC, channel LIMIT 1000

-- top n in a join
SELECT DATE_TRUNC('week', placed_at) AS __timestamp, orders.customer_id AS customer_id, SUM(total) AS "Total" FROM public.orders JOIN (SELECT customer_id AS customer_id__, SUM(total) AS mme_inner__ FROM public.orders GROUP BY customer_id ORDER BY mme_inner__ DESC, customer_id__ LIMIT 5) AS series_limit ON customer_id = customer_id__ GROUP BY DATE_TRUNC('week', placed_at), customer_id ORDER BY __timestamp, customer_id LIMIT 10000

-- week ending Saturday
SELECT DATE_TRUNC('week', local_time + INTERVAL '1 day') + INTERVAL '5 days' AS __timestamp, COUNT(*) AS count FROM orders GROUP BY 1 ORDER BY 1 LIMIT 50000

-- five minutes
SELECT DATE_TRUNC('minute', time) - INTERVAL '1 minute' * (EXTRACT(MINUTE FROM time)::int % 5) AS __timestamp, AVG(cpu) AS "AVG(cpu)" FROM metrics GROUP BY 1 ORDER BY 1 LIMIT 50000

-- seconds of fifteen
SELECT DATE_TRUNC('hour', time) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM time) / 15) AS __timestamp, MAX(cpu) AS m FROM metrics GROUP BY 1 ORDER BY 1 LIMIT 50000

-- date column
SELECT DATE_TRUNC('month', day) AS __timestamp, SUM(target) AS "SUM(target)" FROM targets WHERE day >= TO_DATE('2023-02-01', 'YYYY-MM-DD') AND day < TO_DATE('2024-02-01', 'YYYY-MM-DD') GROUP BY DATE_TRUNC('month', day) ORDER BY 1 LIMIT 50000

-- pie
SELECT state AS state, SUM(total) AS "SUM(total)" FROM orders WHERE state IN ('paid', 'shipped', 'new') GROUP BY state ORDER BY "SUM(total)" DESC LIMIT 100

-- big number
SELECT COUNT(DISTINCT customer_id) AS "COUNT_DISTINCT(customer_id)" FROM orders WHERE placed_at >= TO_TIMESTAMP('2023-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') LIMIT 50000

-- percent metric
SELECT channel AS channel, SUM(CASE WHEN state = 'returned' THEN 1 ELSE 0 END) * 100.0 / COUNT(*) AS pct FROM orders GROUP BY channel ORDER BY pct DESC, channel LIMIT 100

-- filter with null
SELECT COUNT(*) AS count FROM orders WHERE channel IN ('web') OR channel IS NULL LIMIT 50000

-- like filter
SELECT COUNT(*) AS count FROM customers WHERE name ILIKE '%ann%' LIMIT 50000

-- table chart
SELECT id AS id, placed_at AS placed_at, total AS total, state AS state FROM orders WHERE total >= 1990 ORDER BY total DESC, id LIMIT 1000

-- row count
SELECT COUNT(*) AS rowcount FROM (SELECT id AS id, total AS total FROM orders WHERE total >= 1990 LIMIT 1000) AS rowcount_qry LIMIT 50000

-- filter box
SELECT category AS category FROM products GROUP BY category LIMIT 10000

-- histogram
SELECT total AS total FROM orders WHERE total IS NOT NULL AND state = 'returned' LIMIT 10000

-- hour of day heatmap
SELECT EXTRACT(dow FROM placed_at) AS d, EXTRACT(hour FROM placed_at) AS h, COUNT(*) AS count FROM orders GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 1000

-- enum filter
SELECT COUNT(*) AS count FROM orders WHERE status IN ('paid', 'shipped') LIMIT 50000

-- sql lab
SELECT c.country, date_trunc('quarter', o.placed_at)::date AS quarter, round(sum(o.total), 0) AS revenue, count(*) FILTER (WHERE o.is_gift) AS gifts
FROM orders o JOIN customers c ON c.id = o.customer_id
GROUP BY 1, 2
ORDER BY 1, 2
LIMIT 1001

-- jinja time range
SELECT date_trunc('hour', at) AS h, count(*) AS n FROM events WHERE at >= '2023-05-01T00:00:00' AND at < '2023-05-08T00:00:00' GROUP BY 1 ORDER BY 1 LIMIT 1001

-- rolling in sql
SELECT day, revenue, AVG(revenue) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS ma7 FROM (SELECT day, SUM(revenue) AS revenue FROM daily_sales GROUP BY day) AS virtual_table ORDER BY day LIMIT 50000

-- server-side cursor
--! begin: DECLARE "c_0001_1" CURSOR WITHOUT HOLD FOR SELECT id, total FROM orders WHERE total > 1000 ORDER BY id
--! end: CLOSE "c_0001_1"
FETCH FORWARD 1000 FROM "c_0001_1"
