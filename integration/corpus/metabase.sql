-- Metabase: JDBC in autocommit, remarks in front, all names qualified and quoted, "source" for nested questions.
--! protocol: text
--! startup: TimeZone=UTC
--! startup: DateStyle=ISO
--! startup: extra_float_digits=2
--! session: SET extra_float_digits = 3
--! session: SET application_name = 'Metabase v0.50'
--! session: SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED

-- count
-- Metabase:: userID: 1 queryType: MBQL queryHash: 00aa
SELECT COUNT(*) AS "count" FROM "public"."orders"

-- by month
-- Metabase:: userID: 1 queryType: MBQL queryHash: 00ab
SELECT DATE_TRUNC('month', "public"."orders"."placed_at") AS "placed_at", SUM("public"."orders"."total") AS "sum" FROM "public"."orders" GROUP BY DATE_TRUNC('month', "public"."orders"."placed_at") ORDER BY DATE_TRUNC('month', "public"."orders"."placed_at") ASC

-- by day as date
SELECT CAST("public"."orders"."placed_at" AS date) AS "placed_at", COUNT(*) AS "count" FROM "public"."orders" GROUP BY CAST("public"."orders"."placed_at" AS date) ORDER BY CAST("public"."orders"."placed_at" AS date) ASC

-- by week from Sunday
SELECT (CAST(DATE_TRUNC('week', CAST("public"."orders"."placed_at" + INTERVAL '1 day' AS timestamp)) AS timestamp) + INTERVAL '-1 day') AS "placed_at", COUNT(*) AS "count" FROM "public"."orders" GROUP BY (CAST(DATE_TRUNC('week', CAST("public"."orders"."placed_at" + INTERVAL '1 day' AS timestamp)) AS timestamp) + INTERVAL '-1 day') ORDER BY 1 ASC

-- by week from Sunday of a timestamp
SELECT (DATE_TRUNC('week', ("public"."orders"."local_time" + INTERVAL '1 day')) + INTERVAL '-1 day') AS "local_time", AVG("public"."orders"."total") AS "avg" FROM "public"."orders" GROUP BY (DATE_TRUNC('week', ("public"."orders"."local_time" + INTERVAL '1 day')) + INTERVAL '-1 day') ORDER BY (DATE_TRUNC('week', ("public"."orders"."local_time" + INTERVAL '1 day')) + INTERVAL '-1 day') ASC

-- hour of day
SELECT CAST(extract(hour from "public"."orders"."placed_at") AS integer) AS "placed_at", COUNT(*) AS "count" FROM "public"."orders" GROUP BY CAST(extract(hour from "public"."orders"."placed_at") AS integer) ORDER BY 1 ASC

-- day of week
SELECT (CAST(extract(dow from "public"."orders"."placed_at") AS integer) + 1) AS "placed_at", COUNT(*) AS "count" FROM "public"."orders" GROUP BY (CAST(extract(dow from "public"."orders"."placed_at") AS integer) + 1) ORDER BY 1 ASC

-- quarter of year
SELECT CAST(extract(quarter from "public"."orders"."local_time") AS integer) AS "q", COUNT(*) AS "count" FROM "public"."orders" GROUP BY CAST(extract(quarter from "public"."orders"."local_time") AS integer) ORDER BY 1 ASC

-- week of year
SELECT CAST(CEIL(CAST(extract(doy from DATE_TRUNC('week', "public"."orders"."local_time")) AS integer) / 7.0) AS integer) AS "w", COUNT(*) AS "count" FROM "public"."orders" GROUP BY 1 ORDER BY 1 ASC

-- range of moments
--! $1: timestamptz 2023-06-01 00:00:00+00
--! $2: timestamptz 2023-09-01 00:00:00+00
SELECT "public"."orders"."channel" AS "channel", COUNT(*) AS "count" FROM "public"."orders" WHERE ("public"."orders"."placed_at" >= $1) AND ("public"."orders"."placed_at" < $2) GROUP BY "public"."orders"."channel" ORDER BY "public"."orders"."channel" ASC

-- literal range
SELECT SUM("public"."orders"."total") AS "sum" FROM "public"."orders" WHERE ("public"."orders"."placed_at" >= timestamp with time zone '2023-03-01 00:00:00.000Z') AND ("public"."orders"."placed_at" < timestamp with time zone '2023-04-01 00:00:00.000Z')

-- previous 12 months
SELECT DATE_TRUNC('month', "public"."events"."at") AS "at", COUNT(*) AS "count" FROM "public"."events" WHERE ("public"."events"."at" >= DATE_TRUNC('month', (NOW() + (INTERVAL '-120 month')))) AND ("public"."events"."at" < DATE_TRUNC('month', NOW())) GROUP BY DATE_TRUNC('month', "public"."events"."at") ORDER BY DATE_TRUNC('month', "public"."events"."at") ASC

-- contains, case aside
--! $1: varchar %wrap%
SELECT COUNT(*) AS "count" FROM "public"."orders" WHERE (LOWER("public"."orders"."note") LIKE $1)

-- not null and not empty
SELECT COUNT(*) AS "count" FROM "public"."orders" WHERE ("public"."orders"."note" IS NOT NULL) AND (("public"."orders"."note" <> '') OR ("public"."orders"."note" IS NULL))

-- joined names
SELECT "Products"."category" AS "Products__category", SUM("public"."order_items"."quantity" * "public"."order_items"."unit_price") AS "sum" FROM "public"."order_items" LEFT JOIN "public"."products" AS "Products" ON "public"."order_items"."product_id" = "Products"."id" GROUP BY "Products"."category" ORDER BY "sum" DESC, "Products"."category" ASC

-- two joins and a month
SELECT "Products"."category" AS "Products__category", DATE_TRUNC('month', "Orders"."placed_at") AS "Orders__placed_at", COUNT(distinct "Orders"."customer_id") AS "count" FROM "public"."order_items" LEFT JOIN "public"."products" AS "Products" ON "public"."order_items"."product_id" = "Products"."id" LEFT JOIN "public"."orders" AS "Orders" ON "public"."order_items"."order_id" = "Orders"."id" GROUP BY "Products"."category", DATE_TRUNC('month', "Orders"."placed_at") ORDER BY "Products"."category" ASC, DATE_TRUNC('month', "Orders"."placed_at") ASC

-- nested question
SELECT "source"."channel" AS "channel", AVG("source"."sum") AS "avg" FROM (SELECT "public"."orders"."channel" AS "channel", "public"."orders"."customer_id" AS "customer_id", SUM("public"."orders"."total") AS "sum" FROM "public"."orders" GROUP BY "public"."orders"."channel", "public"."orders"."customer_id") AS "source" GROUP BY "source"."channel" ORDER BY "source"."channel" ASC

-- custom column
SELECT "source"."Size" AS "Size", COUNT(*) AS "count" FROM (SELECT "public"."orders"."total" AS "total", CASE WHEN "public"."orders"."total" > 1500 THEN 'large' WHEN "public"."orders"."total" > 500 THEN 'medium' ELSE 'small' END AS "Size" FROM "public"."orders") AS "source" GROUP BY "source"."Size" ORDER BY "source"."Size" ASC

-- bins
SELECT (FLOOR((("public"."orders"."total" - 0.0) / 250.0)) * 250.0) AS "total", COUNT(*) AS "count" FROM "public"."orders" GROUP BY (FLOOR((("public"."orders"."total" - 0.0) / 250.0)) * 250.0) ORDER BY 1 ASC

-- bins of a float
SELECT ((FLOOR((("public"."events"."value" - 0.0) / 5.0)) * 5.0) + 0.0) AS "value", COUNT(*) AS "count" FROM "public"."events" GROUP BY ((FLOOR((("public"."events"."value" - 0.0) / 5.0)) * 5.0) + 0.0) ORDER BY 1 ASC

-- share of a condition
SELECT CAST(SUM(CASE WHEN "public"."orders"."is_gift" = TRUE THEN 1 ELSE 0.0 END) AS float) / NULLIF(COUNT(*), 0) AS "share" FROM "public"."orders"

-- median
SELECT PERCENTILE_CONT(0.5) within group (order by "public"."orders"."total") AS "median" FROM "public"."orders"

-- cumulative sum
SELECT "source"."d" AS "d", SUM("source"."sum") OVER (ORDER BY "source"."d" ASC ROWS UNBOUNDED PRECEDING) AS "cum" FROM (SELECT DATE_TRUNC('month', "public"."orders"."local_time") AS "d", SUM("public"."orders"."total") AS "sum" FROM "public"."orders" GROUP BY 1) AS "source" ORDER BY "source"."d" ASC

-- rows of a table
SELECT "public"."orders"."id" AS "id", "public"."orders"."customer_id" AS "customer_id", "public"."orders"."placed_at" AS "placed_at", "public"."orders"."total" AS "total", "public"."orders"."note" AS "note" FROM "public"."orders" WHERE "public"."orders"."customer_id" = 32 ORDER BY "public"."orders"."id" ASC LIMIT 2000

-- by an enum
SELECT "public"."orders"."status" AS "status", COUNT(*) AS "count" FROM "public"."orders" GROUP BY "public"."orders"."status" ORDER BY "public"."orders"."status" ASC

-- enum filter
SELECT COUNT(*) AS "count" FROM "public"."orders" WHERE "public"."orders"."status" = CAST('paid' AS "order_status")

-- by a json field
SELECT ("public"."customers"."attributes"#>> array['plan']::text[])::text AS "attributes", COUNT(*) AS "count" FROM "public"."customers" GROUP BY ("public"."customers"."attributes"#>> array['plan']::text[])::text ORDER BY 1 ASC

-- values of a field
SELECT "source"."substring1" AS "substring1", "source"."count" AS "count" FROM (SELECT SUBSTRING("public"."customers"."name" FROM 1 FOR 1234) AS "substring1", COUNT(*) AS "count" FROM "public"."customers" GROUP BY 1) AS "source" ORDER BY 1 ASC LIMIT 10000

-- report time zone
SELECT DATE_TRUNC('day', ("public"."orders"."placed_at" AT TIME ZONE 'America/New_York')) AS "d", COUNT(*) AS "count" FROM "public"."orders" GROUP BY 1 ORDER BY 1 ASC

-- distinct of a field
SELECT "public"."products"."category" AS "category" FROM "public"."products" GROUP BY "public"."products"."category" ORDER BY "public"."products"."category" ASC LIMIT 1001

-- days between
SELECT AVG(CAST("public"."orders"."delivered_on" - CAST("public"."orders"."local_time" AS date) AS double precision)) AS "avg" FROM "public"."orders"

-- standard deviation
SELECT "public"."orders"."currency" AS "currency", STDDEV_POP("public"."orders"."total") AS "stddev" FROM "public"."orders" GROUP BY "public"."orders"."currency" ORDER BY 1 ASC
