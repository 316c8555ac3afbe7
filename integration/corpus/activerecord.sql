-- ActiveRecord: libpq with prepared statements, results in text, $n without types, groupdate's zones.
--! protocol: text
--! startup: TimeZone=UTC
--! session: SET standard_conforming_strings = on
--! session: SET intervalstyle = iso_8601
--! session: SET client_min_messages TO 'warning'

-- count
SELECT COUNT(*) FROM "orders"

-- where
--! $1: unknown paid
SELECT COUNT(*) FROM "orders" WHERE "orders"."state" = $1

-- group count
SELECT COUNT(*) AS "count_all", "orders"."state" AS "orders_state" FROM "orders" GROUP BY "orders"."state"

-- group sum
SELECT SUM("orders"."total") AS "sum_total", "orders"."channel" AS "orders_channel" FROM "orders" GROUP BY "orders"."channel"

-- between
--! $1: unknown 2023-03-01 00:00:00
--! $2: unknown 2023-04-01 00:00:00
SELECT SUM("orders"."total") FROM "orders" WHERE "orders"."placed_at" BETWEEN $1 AND $2

-- in list
--! $1: unknown 1
--! $2: unknown 32
SELECT "orders".* FROM "orders" WHERE "orders"."customer_id" IN ($1, $2) ORDER BY "orders"."id" ASC

-- in list of some columns
--! $1: unknown 1
--! $2: unknown 32
SELECT "orders"."id", "orders"."total" FROM "orders" WHERE "orders"."customer_id" IN ($1, $2) ORDER BY "orders"."id" ASC

-- first
--! $1: unknown 1
SELECT "orders"."id", "orders"."state" FROM "orders" ORDER BY "orders"."id" ASC LIMIT $1

-- joins and group
SELECT COUNT("orders"."id") AS "count_orders_id", "customers"."country" AS "customers_country" FROM "orders" INNER JOIN "customers" ON "customers"."id" = "orders"."customer_id" GROUP BY "customers"."country"

-- groupdate day
SELECT COUNT(*) AS "count_all", DATE_TRUNC('day', "orders"."placed_at"::timestamptz AT TIME ZONE 'Etc/UTC')::date AS "day" FROM "orders" WHERE ("orders"."placed_at" IS NOT NULL) GROUP BY DATE_TRUNC('day', "orders"."placed_at"::timestamptz AT TIME ZONE 'Etc/UTC')::date

-- groupdate week in a zone
SELECT COUNT(*) AS "count_all", (DATE_TRUNC('week', "orders"."placed_at"::timestamptz AT TIME ZONE 'America/New_York' + INTERVAL '1 day') - INTERVAL '1 day')::date AS "week" FROM "orders" WHERE ("orders"."placed_at" IS NOT NULL) GROUP BY 2

-- groupdate hour of day
SELECT COUNT(*) AS "count_all", EXTRACT(HOUR FROM "orders"."placed_at"::timestamptz AT TIME ZONE 'Etc/UTC' - INTERVAL '0 second')::integer AS "h" FROM "orders" GROUP BY 2

-- pluck
SELECT DISTINCT "customers"."city" FROM "customers"

-- exists
--! $1: unknown 1
--! $2: unknown 1
SELECT 1 AS one FROM "orders" WHERE "orders"."customer_id" = $1 LIMIT $2

-- average
SELECT AVG("orders"."total") FROM "orders" WHERE "orders"."delivered_on" IS NOT NULL

-- distinct count
SELECT COUNT(DISTINCT "orders"."customer_id") FROM "orders"

-- having
SELECT COUNT(*) AS "count_all", "orders"."customer_id" AS "orders_customer_id" FROM "orders" GROUP BY "orders"."customer_id" HAVING (count(*) > 9)

-- eager load
SELECT "customers"."id" AS t0_r0, "customers"."name" AS t0_r1, "orders"."id" AS t1_r0, "orders"."total" AS t1_r1 FROM "customers" LEFT OUTER JOIN "orders" ON "orders"."customer_id" = "customers"."id" WHERE "customers"."id" = 32 ORDER BY 3

-- batches
--! $1: unknown 1000
--! $2: unknown 500
SELECT "orders"."id", "orders"."total" FROM "orders" WHERE "orders"."id" > $1 ORDER BY "orders"."id" ASC LIMIT $2

-- enum where
--! $1: unknown shipped
SELECT COUNT(*) FROM "orders" WHERE "orders"."status" = $1

-- not
--! $1: unknown cancelled
SELECT SUM("orders"."total") FROM "orders" WHERE "orders"."state" != $1
