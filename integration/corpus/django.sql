-- Django: psycopg, literals in the text, "U0" sub-selects, AT TIME ZONE in Trunc and Extract.
--! protocol: simple
--! startup: TimeZone=UTC
--! startup: client_encoding=UTF8

-- count
SELECT COUNT(*) AS "__count" FROM "orders" WHERE "orders"."state" = 'paid'

-- aggregate
SELECT SUM("orders"."total") AS "total__sum", AVG("orders"."total") AS "total__avg", MAX("orders"."placed_at") AS "placed_at__max" FROM "orders"

-- values and annotate
SELECT "orders"."channel", COUNT("orders"."id") AS "n" FROM "orders" GROUP BY "orders"."channel" ORDER BY "n" DESC, "orders"."channel" ASC

-- TruncMonth
SELECT DATE_TRUNC('month', "orders"."placed_at" AT TIME ZONE 'UTC') AS "month", SUM("orders"."total") AS "t" FROM "orders" GROUP BY 1 ORDER BY 1 ASC

-- TruncMonth in a zone
SELECT DATE_TRUNC('month', "orders"."placed_at" AT TIME ZONE 'Europe/Berlin') AS "month", SUM("orders"."total") AS "t" FROM "orders" GROUP BY 1 ORDER BY 1 ASC

-- TruncDate
SELECT ("orders"."placed_at" AT TIME ZONE 'UTC')::date AS "day", COUNT(*) AS "n" FROM "orders" GROUP BY 1 ORDER BY 1 ASC

-- year lookup
SELECT COUNT(*) AS "__count" FROM "orders" WHERE "orders"."placed_at" BETWEEN '2023-01-01T00:00:00+00:00'::timestamptz AND '2023-12-31T23:59:59.999999+00:00'::timestamptz

-- ExtractHour
SELECT EXTRACT(HOUR FROM "orders"."placed_at" AT TIME ZONE 'America/New_York') AS "h", COUNT("orders"."id") AS "n" FROM "orders" GROUP BY 1 ORDER BY 1 ASC

-- select related
SELECT "orders"."id", "orders"."total", "customers"."id", "customers"."name" FROM "orders" INNER JOIN "customers" ON ("orders"."customer_id" = "customers"."id") WHERE "customers"."country" = 'DE' ORDER BY "orders"."id" ASC LIMIT 21

-- exists
SELECT COUNT(*) AS "__count" FROM "customers" WHERE EXISTS(SELECT 1 AS "a" FROM "orders" U0 WHERE (U0."customer_id" = ("customers"."id") AND U0."state" = 'returned') LIMIT 1)

-- not exists
SELECT COUNT(*) AS "__count" FROM "customers" WHERE NOT (EXISTS(SELECT 1 AS "a" FROM "orders" U0 WHERE U0."customer_id" = ("customers"."id") LIMIT 1))

-- in of a queryset
SELECT COUNT(*) AS "__count" FROM "orders" WHERE "orders"."customer_id" IN (SELECT U0."id" FROM "customers" U0 WHERE U0."active")

-- subquery annotation
SELECT "customers"."id", (SELECT U0."total" FROM "orders" U0 WHERE U0."customer_id" = ("customers"."id") ORDER BY U0."id" DESC LIMIT 1) AS "last_total" FROM "customers" WHERE "customers"."id" < 50 ORDER BY "customers"."id" ASC

-- conditional
SELECT COUNT("orders"."id") FILTER (WHERE "orders"."state" = 'paid') AS "paid", SUM(CASE WHEN "orders"."is_gift" THEN "orders"."total" ELSE NULL END) AS "gifts" FROM "orders"

-- coalesce
SELECT COALESCE(SUM("orders"."total"), 0) AS "s" FROM "orders" WHERE "orders"."customer_id" = 999999

-- icontains
SELECT COUNT(*) AS "__count" FROM "customers" WHERE UPPER("customers"."email"::text) LIKE UPPER('%example%')

-- startswith
SELECT "customers"."id", "customers"."name" FROM "customers" WHERE "customers"."name"::text LIKE 'Bob%' ORDER BY "customers"."id" ASC

-- iexact
SELECT COUNT(*) AS "__count" FROM "customers" WHERE UPPER("customers"."city"::text) = UPPER('berlin')

-- regex
SELECT COUNT(*) AS "__count" FROM "customers" WHERE "customers"."name"::text ~ '^(Ann|Bob)'

-- F expression
SELECT SUM(("order_items"."unit_price" * "order_items"."quantity")) AS "revenue" FROM "order_items"

-- annotate across a join
SELECT "customers"."country", COUNT(DISTINCT "orders"."id") AS "n", SUM("orders"."total") AS "t" FROM "customers" LEFT OUTER JOIN "orders" ON ("customers"."id" = "orders"."customer_id") GROUP BY "customers"."country" HAVING COUNT(DISTINCT "orders"."id") > 10 ORDER BY "t" DESC

-- distinct dates
SELECT DISTINCT DATE_TRUNC('day', "targets"."day")::date AS "datefield" FROM "targets" WHERE "targets"."day" IS NOT NULL ORDER BY "datefield" ASC

-- window
SELECT "orders"."id", "orders"."customer_id", ROW_NUMBER() OVER (PARTITION BY "orders"."customer_id" ORDER BY "orders"."id" DESC) AS "rn" FROM "orders" WHERE "orders"."customer_id" < 30 ORDER BY 2, 3

-- json key
SELECT COUNT(*) AS "__count" FROM "customers" WHERE ("customers"."attributes" -> 'plan') = '"pro"'::jsonb

-- array contains
SELECT COUNT(*) AS "__count" FROM "customers" WHERE "customers"."tags" @> (ARRAY['vip'])::text[]

-- uuid lookup
SELECT "customers"."id" FROM "customers" WHERE "customers"."external_id" = '00000000-0000-4000-8000-00000000002a'::uuid LIMIT 21

-- count of a sliced query
SELECT COUNT(*) FROM (SELECT "orders"."id" AS "col1" FROM "orders" WHERE "orders"."total" > 100.00 LIMIT 1000) subquery

-- combined
(SELECT "orders"."customer_id" AS "c" FROM "orders" WHERE "orders"."total" > 1900) UNION (SELECT "customers"."id" AS "c" FROM "customers" WHERE NOT "customers"."active") ORDER BY 1 ASC

-- admin change list
SELECT "orders"."id", "orders"."state", "orders"."total" FROM "orders" ORDER BY "orders"."id" DESC LIMIT 100

-- StringAgg
SELECT "products"."category", STRING_AGG("products"."sku", ', ' ORDER BY "products"."sku" ASC) AS "skus" FROM "products" GROUP BY "products"."category" ORDER BY 1 ASC
