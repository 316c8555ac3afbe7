-- Npgsql and Entity Framework: binary both ways, short aliases, parameters typed, date_part and date_trunc in UTC.
--! protocol: binary
--! startup: TimeZone=UTC

-- count
SELECT count(*)::int FROM orders AS o

-- where
--! $1: text paid
SELECT count(*)::int FROM orders AS o WHERE o.state = $1

-- group
SELECT o.channel AS "Key", count(*)::int AS "Count", COALESCE(sum(o.total), 0.0) AS "Sum" FROM orders AS o GROUP BY o.channel ORDER BY o.channel NULLS FIRST

-- year and month
SELECT date_part('year', o.placed_at AT TIME ZONE 'UTC')::int AS "Year", date_part('month', o.placed_at AT TIME ZONE 'UTC')::int AS "Month", count(*)::int AS "Count" FROM orders AS o GROUP BY 1, 2 ORDER BY 1, 2

-- year of a timestamp
SELECT date_part('year', o.local_time)::int AS "Year", sum(o.total) AS "Sum" FROM orders AS o GROUP BY date_part('year', o.local_time)::int ORDER BY 1

-- date of a moment
SELECT date_trunc('day', o.placed_at, 'UTC') AS "Key", count(*)::int AS "Count" FROM orders AS o GROUP BY date_trunc('day', o.placed_at, 'UTC') ORDER BY 1

-- contains
--! $1: int8[] {1,2,32}
SELECT o.id, o.total FROM orders AS o WHERE o.customer_id = ANY ($1) ORDER BY o.id

-- contains of text
--! $1: text[] {web,phone}
SELECT count(*)::int FROM orders AS o WHERE o.channel = ANY ($1)

-- contains with null
--! $1: text[] {web,NULL}
SELECT count(*)::int FROM orders AS o WHERE o.channel = ANY ($1) OR (o.channel IS NULL AND array_position($1, NULL) IS NOT NULL)

-- take and skip
--! $1: int4 10
--! $2: int4 20
SELECT c.id, c.name FROM customers AS c ORDER BY c.id LIMIT $1 OFFSET $2

-- join
SELECT c.country, count(*)::int AS "N" FROM orders AS o INNER JOIN customers AS c ON o.customer_id = c.id GROUP BY c.country ORDER BY c.country

-- include with take
--! $1: int4 5
SELECT c0.id, c0.name, o.id, o.total FROM (SELECT c.id, c.name FROM customers AS c ORDER BY c.id LIMIT $1) AS c0 LEFT JOIN orders AS o ON c0.id = o.customer_id ORDER BY c0.id, o.id

-- any
SELECT EXISTS (SELECT 1 FROM orders AS o WHERE o.total > 1000.0)

-- average
SELECT avg(o.total)::numeric FROM orders AS o

-- sum of doubles
SELECT COALESCE(sum(e.value), 0.0) FROM events AS e

-- starts with
--! $1: text Bob%
SELECT count(*)::int FROM customers AS c WHERE c.name LIKE $1

-- conditional
SELECT count(CASE WHEN o.is_gift THEN 1 END)::int AS a, count(CASE WHEN NOT o.is_gift THEN 1 END)::int AS b FROM orders AS o

-- moment
--! $1: timestamptz 2023-06-01 00:00:00+00
SELECT max(o.placed_at), min(o.placed_at) FROM orders AS o WHERE o.placed_at >= $1

-- date
--! $1: date 2023-06-01
SELECT count(*)::int FROM targets AS t WHERE t.day > $1

-- uuid
--! $1: uuid 00000000-0000-4000-8000-00000000002a
SELECT c.id, c.name FROM customers AS c WHERE c.external_id = $1 LIMIT 1

-- first of each
SELECT c.id, t.total FROM customers AS c LEFT JOIN LATERAL (SELECT o.total FROM orders AS o WHERE c.id = o.customer_id ORDER BY o.id DESC LIMIT 1) AS t ON TRUE WHERE c.id < 40 ORDER BY c.id

-- first by row number
SELECT c.id, t0.total FROM customers AS c LEFT JOIN (SELECT t.customer_id, t.total FROM (SELECT o.customer_id, o.total, ROW_NUMBER() OVER(PARTITION BY o.customer_id ORDER BY o.id DESC) AS row FROM orders AS o) AS t WHERE t.row <= 1) AS t0 ON c.id = t0.customer_id WHERE c.id < 40 ORDER BY c.id

-- interval of a difference
SELECT o.id, o.shipped_at - o.placed_at AS "Took" FROM orders AS o WHERE o.id < 40 ORDER BY o.id
