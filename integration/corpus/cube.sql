-- Cube: node-postgres, parameters as unknown text, double quoted members, pre-aggregations.
--! protocol: text
--! startup: TimeZone=UTC

-- count by day
--! $1: unknown 2023-02-01T00:00:00.000Z
--! $2: unknown 2023-02-28T23:59:59.999Z
SELECT date_trunc('day', ("orders".placed_at::timestamptz AT TIME ZONE 'UTC')) "orders__placed_at_day", count("orders".id) "orders__count" FROM public.orders AS "orders" WHERE ("orders".placed_at >= $1::timestamptz AND "orders".placed_at <= $2::timestamptz) GROUP BY 1 ORDER BY 1 ASC LIMIT 10000

-- month in a zone
SELECT date_trunc('month', ("orders".placed_at::timestamptz AT TIME ZONE 'Europe/Berlin')) "orders__placed_at_month", sum("orders".total) "orders__total" FROM public.orders AS "orders" GROUP BY 1 ORDER BY 1 ASC LIMIT 10000

-- by dimension
SELECT "orders".channel "orders__channel", sum("orders".total) "orders__total", count(distinct "orders".customer_id) "orders__customers" FROM public.orders AS "orders" GROUP BY 1 ORDER BY 2 DESC LIMIT 10000

-- filter by parameter
--! $1: unknown paid
--! $2: unknown shipped
SELECT count(*) "orders__count" FROM public.orders AS "orders" WHERE ("orders".state IN ($1, $2)) LIMIT 10000

-- contains
--! $1: unknown wrap
SELECT count(*) "orders__count" FROM public.orders AS "orders" WHERE ("orders".note ILIKE '%' || $1 || '%') LIMIT 10000

-- joined
SELECT "customers".country "customers__country", sum("orders".total) "orders__total" FROM public.orders AS "orders" LEFT JOIN public.customers AS "customers" ON "orders".customer_id = "customers".id GROUP BY 1 ORDER BY 2 DESC LIMIT 10000

-- keys first
SELECT "keys"."customers__country" "c", count("customers_key__customers".id) "n" FROM (SELECT DISTINCT "customers".country "customers__country", "customers".id "customers__id" FROM public.orders AS "orders" LEFT JOIN public.customers AS "customers" ON "orders".customer_id = "customers".id) AS "keys" LEFT JOIN public.customers AS "customers_key__customers" ON "keys"."customers__id" = "customers_key__customers".id GROUP BY 1 ORDER BY 1 LIMIT 10000

-- rolling window
SELECT q_0."d", sum(q_1."t") "rolling" FROM (SELECT date_from::timestamp AS "d" FROM generate_series(timestamp '2023-02-01', timestamp '2023-02-20', interval '1 day') AS date_from) AS q_0 LEFT JOIN (SELECT date_trunc('day', local_time) AS "x", sum(total) AS "t" FROM public.orders GROUP BY 1) AS q_1 ON q_1."x" > q_0."d" - interval '7 day' AND q_1."x" <= q_0."d" GROUP BY 1 ORDER BY 1

-- refresh key
SELECT max("orders".placed_at) FROM public.orders AS "orders"

-- refresh key of the clock
SELECT FLOOR((EXTRACT(EPOCH FROM NOW())) / 3600) >= 0 AS refresh_key, count(*) FROM public.orders

-- ratio
SELECT "orders".currency "orders__currency", 1.0 * count(CASE WHEN ("orders".state = 'returned') THEN 1 END) / count(*) "orders__rate" FROM public.orders AS "orders" GROUP BY 1 ORDER BY 1 LIMIT 10000

-- having
--! $1: unknown 1000
SELECT "orders".customer_id "c", sum("orders".total) "t" FROM public.orders AS "orders" GROUP BY 1 HAVING (sum("orders".total) > $1) ORDER BY 2 DESC, 1 LIMIT 100

-- week of a timestamp
SELECT date_trunc('week', "orders".local_time) "w", avg("orders".total) "a" FROM public.orders AS "orders" GROUP BY 1 ORDER BY 1 LIMIT 10000

-- case dimension
SELECT CASE WHEN "orders".total < 500 THEN 'small' ELSE 'big' END "size", count(*) "n" FROM public.orders AS "orders" GROUP BY 1 ORDER BY 2 DESC LIMIT 100
