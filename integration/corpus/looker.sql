-- Looker: JDBC, a comment of its context, views as aliases, fields named "view.field", FETCH NEXT.
--! protocol: text
--! startup: TimeZone=UTC
--! startup: extra_float_digits=2
--! session: SET application_name = 'Looker'

-- measure by dimension
-- Looker Query Context '{"user_id":6,"history_slug":"aa"}'
SELECT orders."channel" AS "orders.channel", COALESCE(SUM(CAST(( orders."total" ) AS DOUBLE PRECISION)), 0) AS "orders.total_sum" FROM "public"."orders" AS "orders" GROUP BY 1 ORDER BY 2 DESC FETCH NEXT 500 ROWS ONLY

-- date dimension
SELECT (DATE(orders."placed_at" )) AS "orders.placed_date", COUNT(*) AS "orders.count" FROM "public"."orders" AS "orders" WHERE ((( orders."placed_at" ) >= ((SELECT TIMESTAMP '2023-02-01')) AND ( orders."placed_at" ) < ((SELECT TIMESTAMP '2023-02-01' + INTERVAL '28 day')))) GROUP BY (DATE(orders."placed_at" )) ORDER BY 1 DESC FETCH NEXT 500 ROWS ONLY

-- month dimension
SELECT (TO_CHAR(DATE_TRUNC('month', orders."placed_at" ), 'YYYY-MM')) AS "orders.placed_month", COUNT(*) AS "orders.count" FROM "public"."orders" AS "orders" GROUP BY (DATE_TRUNC('month', orders."placed_at" )) ORDER BY 1 DESC FETCH NEXT 500 ROWS ONLY

-- month of local time
SELECT (TO_CHAR(DATE_TRUNC('month', orders."local_time" ), 'YYYY-MM')) AS "orders.local_month", COUNT(DISTINCT orders."customer_id") AS "orders.customers" FROM "public"."orders" AS "orders" GROUP BY (DATE_TRUNC('month', orders."local_time" )) ORDER BY 1 DESC FETCH NEXT 500 ROWS ONLY

-- week dimension
SELECT (TO_CHAR(DATE_TRUNC('week', orders."local_time" ), 'YYYY-MM-DD')) AS "orders.local_week", COUNT(*) AS "orders.count" FROM "public"."orders" AS "orders" GROUP BY (DATE_TRUNC('week', orders."local_time" )) ORDER BY 1 DESC FETCH NEXT 500 ROWS ONLY

-- date with time
SELECT (TO_CHAR(orders."local_time" , 'YYYY-MM-DD HH24:MI:SS')) AS "orders.local_time", orders."id" AS "orders.id" FROM "public"."orders" AS "orders" WHERE orders."id" < 100 ORDER BY 1 DESC FETCH NEXT 500 ROWS ONLY

-- hour of day
SELECT (CAST(EXTRACT(HOUR FROM CAST(orders."local_time" AS TIMESTAMP)) AS INT)) AS "orders.hour", COUNT(*) AS "orders.count" FROM "public"."orders" AS "orders" GROUP BY 1 ORDER BY 1 FETCH NEXT 500 ROWS ONLY

-- quarter
SELECT (TO_CHAR(DATE_TRUNC('month', DATE_TRUNC('quarter', orders."local_time" )), 'YYYY-MM')) AS "orders.quarter", SUM(orders."total") AS "orders.sum" FROM "public"."orders" AS "orders" GROUP BY (DATE_TRUNC('quarter', orders."local_time" )) ORDER BY 1 FETCH NEXT 500 ROWS ONLY

-- day of week name
SELECT (TO_CHAR(orders."local_time" , 'Day')) AS "orders.day", COUNT(*) AS "orders.count" FROM "public"."orders" AS "orders" GROUP BY 1 ORDER BY 2 DESC, 1 FETCH NEXT 500 ROWS ONLY

-- joined
SELECT customers."country" AS "customers.country", products."category" AS "products.category", COALESCE(SUM(order_items."quantity" * order_items."unit_price"), 0) AS "order_items.revenue" FROM "public"."order_items" AS "order_items" LEFT JOIN "public"."orders" AS "orders" ON order_items."order_id" = orders."id" LEFT JOIN "public"."customers" AS "customers" ON orders."customer_id" = customers."id" LEFT JOIN "public"."products" AS "products" ON order_items."product_id" = products."id" GROUP BY 1, 2 ORDER BY 3 DESC FETCH NEXT 500 ROWS ONLY

-- yesno filter
SELECT (CASE WHEN (orders."total" > 1000) THEN 'Yes' ELSE 'No' END) AS "orders.is_large", COUNT(*) AS "orders.count" FROM "public"."orders" AS "orders" WHERE (orders."is_gift") GROUP BY 1 ORDER BY 2 DESC, 1 FETCH NEXT 500 ROWS ONLY

-- tiers
SELECT CASE WHEN orders."total" < 100 THEN 'T00' WHEN orders."total" >= 100 AND orders."total" < 1000 THEN 'T01' WHEN orders."total" >= 1000 THEN 'T02' ELSE 'TXX' END AS "orders.tier__sort_", COUNT(*) AS "n" FROM "public"."orders" AS "orders" GROUP BY 1 ORDER BY 1 FETCH NEXT 500 ROWS ONLY

-- derived table
WITH customer_facts AS (SELECT customer_id, COUNT(*) AS lifetime_orders, SUM(total) AS lifetime_value, MIN(placed_at) AS first_order FROM public.orders GROUP BY customer_id) SELECT customer_facts."lifetime_orders" AS "customer_facts.lifetime_orders", COUNT(*) AS "n", AVG(customer_facts."lifetime_value") AS "avg" FROM customer_facts GROUP BY 1 ORDER BY 1 FETCH NEXT 500 ROWS ONLY

-- filtered measure
SELECT orders."currency" AS "orders.currency", COUNT(CASE WHEN (orders."state" = 'returned') THEN 1 ELSE NULL END) AS "orders.returned", COUNT(DISTINCT CASE WHEN orders."state" = 'paid' THEN orders."customer_id" ELSE NULL END) AS "orders.paying" FROM "public"."orders" AS "orders" GROUP BY 1 ORDER BY 1 FETCH NEXT 500 ROWS ONLY

-- string matching
SELECT COUNT(*) AS "n" FROM "public"."customers" AS "customers" WHERE (((customers."email") LIKE '%example%')) AND ((LENGTH(customers."city" ) <> 0 )) FETCH NEXT 500 ROWS ONLY

-- symmetric aggregate replaced
SELECT COUNT(DISTINCT orders."id" ) AS "orders.count", SUM(order_items."quantity") AS "q" FROM "public"."orders" AS "orders" LEFT JOIN "public"."order_items" AS "order_items" ON orders."id" = order_items."order_id" WHERE orders."channel" = 'web' FETCH NEXT 500 ROWS ONLY

-- list measure
SELECT products."category" AS "products.category", STRING_AGG(products."sku", '|' ORDER BY products."sku") AS "list" FROM "public"."products" AS "products" GROUP BY 1 ORDER BY 1 FETCH NEXT 500 ROWS ONLY

-- last 30 days
SELECT COUNT(*) AS "n" FROM "public"."orders" AS "orders" WHERE ((( orders."placed_at" ) >= ((SELECT (DATE_TRUNC('day', CURRENT_TIMESTAMP) + (-29 || ' day')::INTERVAL))) AND ( orders."placed_at" ) < ((SELECT ((DATE_TRUNC('day', CURRENT_TIMESTAMP) + (-29 || ' day')::INTERVAL) + (30 || ' day')::INTERVAL)))))

-- studio day
SELECT CAST(DATE_TRUNC('SECOND', "local_time") AS DATE) AS "qt_1", COUNT(1) AS "__record_count" FROM "public"."orders" GROUP BY "qt_1" ORDER BY "qt_1"

-- studio month and day
SELECT CAST(TO_CHAR(DATE_TRUNC('SECOND', "local_time"), 'MMDD') AS BIGINT) AS "qt_2", SUM("total") AS "qt_3" FROM "public"."orders" GROUP BY "qt_2" ORDER BY "qt_2"

-- studio regexp
SELECT COUNT(1) AS "__record_count" FROM "public"."customers" WHERE ("city" ~ 'Ber')

-- time zone converted
SELECT (DATE(orders."placed_at"::timestamptz AT TIME ZONE 'America/Los_Angeles')) AS "orders.placed_date", COUNT(*) AS "n" FROM "public"."orders" AS "orders" GROUP BY 1 ORDER BY 1 DESC FETCH NEXT 500 ROWS ONLY
