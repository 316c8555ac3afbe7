-- SQLAlchemy on psycopg 3: extended, a transaction, parameters with types of their own, lower case names unquoted.
--! protocol: text
--! startup: TimeZone=UTC
--! session: BEGIN

-- scalar count
--! $1: varchar paid
SELECT count(*) AS count_1 FROM orders WHERE orders.state = $1::VARCHAR

-- query count
SELECT count(*) AS count_1 FROM (SELECT orders.id AS orders_id FROM orders WHERE orders.total > 10) AS anon_1

-- group and limit
--! $1: int4 10
SELECT orders.channel, sum(orders.total) AS total FROM orders GROUP BY orders.channel ORDER BY total DESC LIMIT $1::INTEGER

-- range
--! $1: timestamptz 2023-03-01 00:00:00+00:00
--! $2: timestamptz 2023-04-01 00:00:00+00:00
SELECT sum(orders.total) AS sum_1 FROM orders WHERE orders.placed_at >= $1::TIMESTAMP WITH TIME ZONE AND orders.placed_at < $2::TIMESTAMP WITH TIME ZONE

-- expanding in
--! $1: varchar new
--! $2: varchar paid
SELECT count(orders.id) AS count_1 FROM orders WHERE orders.state IN ($1::VARCHAR, $2::VARCHAR)

-- any of an array
--! $1: int8[] {1,2,3,32}
SELECT count(*) AS count_1 FROM orders WHERE orders.customer_id = ANY ($1)

-- date_trunc with a parameter
--! $1: varchar month
SELECT date_trunc($1::VARCHAR, orders.local_time) AS m, count(*) AS n FROM orders GROUP BY m ORDER BY m

-- extract
SELECT EXTRACT(year FROM orders.local_time) AS y, EXTRACT(month FROM orders.local_time) AS m, sum(orders.total) AS s FROM orders GROUP BY y, m ORDER BY y, m

-- joined load
SELECT customers.id, customers.name, orders_1.id AS id_1, orders_1.total FROM customers LEFT OUTER JOIN orders AS orders_1 ON customers.id = orders_1.customer_id WHERE customers.id < 20 ORDER BY customers.id, orders_1.id

-- select in load
--! $1: int8 1
--! $2: int8 2
--! $3: int8 3
SELECT orders.customer_id AS orders_customer_id, orders.id AS orders_id, orders.total AS orders_total FROM orders WHERE orders.customer_id IN ($1::BIGINT, $2::BIGINT, $3::BIGINT) ORDER BY orders.id

-- cte
WITH regional AS (SELECT customers.country AS country, sum(orders.total) AS s FROM customers JOIN orders ON orders.customer_id = customers.id GROUP BY customers.country), top AS (SELECT regional.country AS country FROM regional WHERE regional.s > (SELECT sum(regional.s) / 10 AS anon_1 FROM regional)) SELECT products.category, sum(order_items.quantity) AS q FROM order_items JOIN products ON products.id = order_items.product_id JOIN orders ON orders.id = order_items.order_id JOIN customers ON customers.id = orders.customer_id WHERE customers.country IN (SELECT top.country FROM top) GROUP BY products.category ORDER BY products.category

-- case
SELECT CASE WHEN (orders.total > 1000) THEN 'big' ELSE 'small' END AS size, count(*) AS n FROM orders GROUP BY size ORDER BY size

-- cast
SELECT CAST(orders.total AS INTEGER) AS t, count(*) AS n FROM orders WHERE orders.id < 200 GROUP BY CAST(orders.total AS INTEGER) ORDER BY t

-- over
SELECT orders.id, rank() OVER (PARTITION BY orders.channel ORDER BY orders.total DESC) AS r FROM orders WHERE orders.state = 'returned' ORDER BY r, orders.id

-- filter
SELECT count(orders.id) FILTER (WHERE orders.is_gift IS true) AS gifts, count(orders.id) FILTER (WHERE orders.is_gift IS NOT true) AS others FROM orders

-- union all
SELECT anon_1.k, sum(anon_1.n) AS s FROM (SELECT orders.channel AS k, count(*) AS n FROM orders GROUP BY orders.channel UNION ALL SELECT products.category AS k, count(*) AS n FROM products GROUP BY products.category) AS anon_1 GROUP BY anon_1.k ORDER BY anon_1.k

-- exists
SELECT EXISTS (SELECT 1 FROM orders WHERE orders.total > 1999) AS anon_1

-- grouping sets
SELECT orders.channel, orders.state, count(*) AS n FROM orders GROUP BY ROLLUP(orders.channel, orders.state) ORDER BY orders.channel, orders.state, n

-- percentile
SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY orders.total) AS p90 FROM orders

-- array_agg
SELECT orders.channel, array_agg(DISTINCT orders.state) AS states FROM orders GROUP BY orders.channel ORDER BY orders.channel

-- to_char
SELECT to_char(orders.local_time, 'YYYY-MM-DD') AS d, count(*) AS n FROM orders GROUP BY d ORDER BY d

-- interval
SELECT count(*) AS n FROM orders WHERE orders.shipped_at - orders.placed_at > INTERVAL '1 day'

-- func lower
--! $1: varchar berlin
SELECT count(*) AS n FROM customers WHERE lower(customers.city) = $1::VARCHAR

-- distinct
SELECT DISTINCT orders.currency, orders.state FROM orders ORDER BY orders.currency, orders.state
