-- Sequelize, TypeORM, Prisma, Drizzle and plain node-postgres: one session each in life, one file here; text results.
--! protocol: text
--! startup: TimeZone=UTC

-- sequelize count
SELECT count(*) AS "count" FROM "orders" AS "order" WHERE "order"."state" = 'paid'

-- sequelize group
SELECT "channel", COUNT("id") AS "n", SUM("total") AS "sum" FROM "orders" AS "order" GROUP BY "channel"

-- sequelize date_trunc
SELECT date_trunc('month', "placed_at") AS "month", SUM("total") AS "sum" FROM "orders" AS "order" GROUP BY date_trunc('month', "placed_at") ORDER BY date_trunc('month', "placed_at") ASC

-- sequelize include
SELECT "order"."id", "order"."total", "customer"."id" AS "customer.id", "customer"."name" AS "customer.name" FROM "orders" AS "order" LEFT OUTER JOIN "customers" AS "customer" ON "order"."customer_id" = "customer"."id" WHERE "order"."id" <= 30 ORDER BY "order"."id" ASC

-- sequelize limit in a subquery
SELECT "customer".*, "orders"."id" AS "orders.id", "orders"."total" AS "orders.total" FROM (SELECT "customer"."id", "customer"."name" FROM "customers" AS "customer" ORDER BY "customer"."id" ASC LIMIT 5) AS "customer" LEFT OUTER JOIN "orders" AS "orders" ON "customer"."id" = "orders"."customer_id" ORDER BY "customer"."id" ASC, "orders"."id"

-- sequelize op
SELECT count(*) AS "count" FROM "orders" AS "order" WHERE ("order"."placed_at" >= '2023-03-01 00:00:00.000 +00:00' AND "order"."placed_at" < '2023-04-01 00:00:00.000 +00:00') AND "order"."state" IN ('paid', 'new')

-- sequelize iLike
SELECT count(*) AS "count" FROM "customers" AS "customer" WHERE "customer"."name" ILIKE '%bob%'

-- sequelize any
SELECT count(*) AS "count" FROM "orders" AS "order" WHERE "order"."customer_id" = ANY (ARRAY[1,2,3]::INTEGER[])

-- typeorm count
--! $1: unknown web
SELECT COUNT(1) AS "cnt" FROM "orders" "Order" WHERE "Order"."channel" = $1

-- typeorm count distinct
SELECT COUNT(DISTINCT("Order"."id")) AS "cnt" FROM "orders" "Order" LEFT JOIN "customers" "Order__customer" ON "Order__customer"."id"="Order"."customer_id"

-- typeorm find
--! $1: unknown 32
SELECT "Order"."id" AS "Order_id", "Order"."total" AS "Order_total", "Order"."placed_at" AS "Order_placed_at" FROM "orders" "Order" WHERE (("Order"."customer_id" = $1)) ORDER BY "Order_id" ASC

-- typeorm query builder
--! $1: unknown 2023-03-01T00:00:00.000Z
SELECT "o"."channel" AS "channel", SUM("o"."total") AS "sum" FROM "orders" "o" WHERE "o"."placed_at" >= $1 GROUP BY "o"."channel" ORDER BY "sum" DESC

-- typeorm distinct alias
SELECT DISTINCT "distinctAlias"."Order_id" AS "ids_Order_id" FROM (SELECT "Order"."id" AS "Order_id", "Item"."id" AS "Item_id" FROM "orders" "Order" LEFT JOIN "order_items" "Item" ON "Item"."order_id"="Order"."id") "distinctAlias" ORDER BY "Order_id" ASC LIMIT 10

-- prisma count
--! $1: unknown paid
--! $2: int8 0
SELECT COUNT(*) FROM (SELECT "public"."orders"."id" FROM "public"."orders" WHERE "public"."orders"."state" = $1 OFFSET $2) AS "sub"

-- prisma count all columns
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."orders"."id" FROM "public"."orders" WHERE 1=1 OFFSET 0) AS "sub"

-- prisma aggregate
--! $1: int8 0
SELECT SUM("total") AS "_sum$total", AVG("total") AS "_avg$total" FROM (SELECT "public"."orders"."id", "public"."orders"."total" FROM "public"."orders" WHERE 1=1 OFFSET $1) AS "sub"

-- prisma group by
--! $1: int8 0
SELECT COUNT(*) AS "_count$_all", SUM("public"."orders"."total") AS "_sum$total", "public"."orders"."channel" FROM "public"."orders" WHERE 1=1 GROUP BY "public"."orders"."channel" OFFSET $1

-- prisma group by ordered
SELECT COUNT(*), "public"."orders"."currency" FROM "public"."orders" WHERE 1=1 GROUP BY "public"."orders"."currency" ORDER BY COUNT(*) DESC, "public"."orders"."currency" ASC OFFSET 0

-- prisma find many
--! $1: unknown 32
--! $2: int8 0
SELECT "public"."orders"."id", "public"."orders"."state"::text, "public"."orders"."total" FROM "public"."orders" WHERE "public"."orders"."customer_id" = $1 ORDER BY "public"."orders"."id" ASC OFFSET $2

-- prisma enum
--! $1: unknown paid
SELECT COUNT(*) FROM (SELECT "public"."orders"."id" FROM "public"."orders" WHERE "public"."orders"."status" = CAST($1::text AS "public"."order_status") OFFSET 0) AS "sub"

-- prisma relation filter
SELECT COUNT(*) FROM (SELECT "public"."customers"."id" FROM "public"."customers" WHERE ("public"."customers"."id") IN (SELECT "t1"."customer_id" FROM "public"."orders" AS "t1" WHERE ("t1"."total" > 1500 AND "t1"."customer_id" IS NOT NULL)) OFFSET 0) AS "sub"

-- drizzle select
--! $1: unknown web
select "id", "total" from "orders" where "orders"."channel" = $1 order by "orders"."id" limit 50

-- drizzle group
select "channel", sum("total"), cast(count(*) as integer) from "orders" group by "orders"."channel" order by "channel"

-- drizzle join
select "customers"."country", count("orders"."id") from "orders" inner join "customers" on "orders"."customer_id" = "customers"."id" group by "customers"."country" order by "customers"."country"

-- drizzle relational
select "customers"."id", "customers"."name", "customers_orders"."data" as "orders" from "customers" left join lateral (select coalesce(json_agg(json_build_array("customers_orders"."id", "customers_orders"."total")), '[]'::json) as "data" from "orders" "customers_orders" where "customers_orders"."customer_id" = "customers"."id") "customers_orders" on true where "customers"."id" < 5 order by 1

-- drizzle cte
with "sq" as (select "customer_id", sum("total") as "s" from "orders" group by "orders"."customer_id") select "customer_id", "s" from "sq" where "s" > 9000 order by "s" desc, 1

-- pg any
--! $1: unknown {web,app}
SELECT channel, count(*)::int AS n FROM orders WHERE channel = ANY($1) GROUP BY channel ORDER BY channel

-- pg any of integers
--! $1: unknown {1,2,3}
SELECT sum(total) FROM orders WHERE customer_id = ANY($1::bigint[])

-- pg not all
--! $1: unknown {web,app}
SELECT count(*) FROM orders WHERE channel <> ALL($1::text[])

-- pg to_char
--! $1: unknown 2023-06-01
SELECT to_char(placed_at, 'YYYY-MM-DD') AS day, count(*) FROM orders WHERE placed_at >= $1 GROUP BY 1 ORDER BY 1

-- pg interval parameter
--! $1: unknown 3650 days
SELECT count(*) FROM events WHERE at > now() - $1::interval

-- pg limit and offset
--! $1: unknown 20
--! $2: unknown 40
SELECT id, name FROM customers ORDER BY id LIMIT $1 OFFSET $2

-- pg optional filter
--! $1: unknown web
SELECT count(*) FROM orders WHERE ($1::text IS NULL OR channel = $1)
