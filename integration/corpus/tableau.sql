-- Tableau: psqlODBC of its own, cursors WITH HOLD, every name quoted, casts around measures, HAVING (COUNT(1) > 0).
--! protocol: simple
--! startup: TimeZone=UTC
--! startup: DateStyle=ISO
--! startup: extra_float_digits=2
--! session: SET application_name = 'Tableau'

-- sum with having
SELECT SUM(CAST("orders"."total" AS double precision)) AS "sum:total:ok" FROM "public"."orders" "orders" HAVING (COUNT(1) > 0)

-- sum of a decimal
SELECT "orders"."channel" AS "channel", SUM("orders"."total") AS "sum:total:ok" FROM "public"."orders" "orders" GROUP BY 1

-- month truncated
SELECT DATE_TRUNC('MONTH', CAST("orders"."placed_at" AS TIMESTAMP)) AS "tmn:placed_at:ok", SUM("orders"."total") AS "sum:total:ok" FROM "public"."orders" "orders" GROUP BY 1

-- month of a timestamp
SELECT DATE_TRUNC('MONTH', "orders"."local_time") AS "tmn:local_time:ok", AVG("orders"."total") AS "avg:total:ok" FROM "public"."orders" "orders" GROUP BY 1

-- year as a number
SELECT CAST(EXTRACT(YEAR FROM "orders"."local_time") AS INTEGER) AS "yr:local_time:ok", COUNT(DISTINCT "orders"."customer_id") AS "ctd:customer_id:ok" FROM "public"."orders" "orders" GROUP BY 1

-- quarter and year
SELECT CAST(EXTRACT(QUARTER FROM "orders"."local_time") AS INTEGER) AS "qr:local_time:ok", CAST(EXTRACT(YEAR FROM "orders"."local_time") AS INTEGER) AS "yr:local_time:ok", SUM("orders"."total") AS "sum:total:ok" FROM "public"."orders" "orders" GROUP BY 1, 2

-- weekday
SELECT (1 + CAST(EXTRACT(DOW FROM "orders"."local_time") AS INTEGER)) AS "wd:local_time:ok", COUNT(1) AS "cnt:orders:ok" FROM "public"."orders" "orders" GROUP BY 1

-- week from Sunday
SELECT CAST(DATE_TRUNC('DAY', "orders"."local_time") AS TIMESTAMP) + (-EXTRACT(DOW FROM "orders"."local_time") * INTERVAL '1 DAY') AS "twk:local_time:ok", COUNT(1) AS "cnt" FROM "public"."orders" "orders" GROUP BY 1

-- in and null
SELECT "orders"."channel" AS "channel", COUNT(1) AS "cnt" FROM "public"."orders" "orders" WHERE (("orders"."state" IN ('paid', 'shipped')) AND (("orders"."channel" NOT IN ('', 'web')) OR ("orders"."channel" IS NULL))) GROUP BY 1 HAVING (COUNT(1) > 0)

-- constant condition
SELECT COUNT(DISTINCT "orders"."customer_id") AS "ctd" FROM "public"."orders" "orders" WHERE ('Close' = 'Close') AND (CAST(EXTRACT(YEAR FROM "orders"."local_time") AS INTEGER) >= 2024)

-- domain of a filter
SELECT "products"."category" AS "category" FROM "public"."products" "products" GROUP BY 1 ORDER BY 1 ASC NULLS FIRST

-- range of a measure
SELECT MIN("orders"."total") AS "lower", MAX("orders"."total") AS "upper", COUNT("orders"."total") AS "n" FROM "public"."orders" "orders" HAVING (COUNT(1) > 0)

-- range of dates
SELECT MIN("orders"."placed_at") AS "TEMP(min)", MAX("orders"."placed_at") AS "TEMP(max)" FROM "public"."orders" "orders" HAVING (COUNT(1) > 0)

-- dates between
SELECT SUM("orders"."total") AS "sum:total:ok" FROM "public"."orders" "orders" WHERE (("orders"."local_time" >= TIMESTAMP '2023-02-01 00:00:00.000') AND ("orders"."local_time" <= TIMESTAMP '2023-03-31 23:59:59.000')) HAVING (COUNT(1) > 0)

-- relative dates
SELECT COUNT(1) AS "n" FROM "public"."orders" "orders" WHERE (("orders"."delivered_on" >= DATE '2023-02-01') AND ("orders"."delivered_on" < (DATE '2023-02-01' + 30 * INTERVAL '1 DAY')))

-- join
SELECT "customers"."country" AS "country", SUM("orders"."total") AS "sum" FROM "public"."orders" "orders" INNER JOIN "public"."customers" "customers" ON ("orders"."customer_id" = "customers"."id") GROUP BY 1

-- related tables
SELECT "t0"."country" AS "country", "t1"."__measure__0" AS "sum" FROM (SELECT "customers"."country" AS "country", MIN(1) AS "_Tableau_join_flag" FROM "public"."customers" "customers" GROUP BY 1) "t0" LEFT JOIN (SELECT "customers"."country" AS "country", SUM("orders"."total") AS "__measure__0" FROM "public"."orders" "orders" LEFT JOIN "public"."customers" "customers" ON ("orders"."customer_id" = "customers"."id") GROUP BY 1) "t1" ON (("t0"."country" = "t1"."country") OR (("t0"."country" IS NULL) AND ("t1"."country" IS NULL)))

-- top n
SELECT "orders"."customer_id" AS "customer_id", SUM("orders"."total") AS "sum" FROM "public"."orders" "orders" INNER JOIN (SELECT "orders"."customer_id" AS "customer_id", SUM("orders"."total") AS "$__alias__0" FROM "public"."orders" "orders" GROUP BY 1 ORDER BY 2 DESC, 1 ASC LIMIT 10) "t0" ON ("orders"."customer_id" = "t0"."customer_id") GROUP BY 1

-- fixed level of detail
SELECT "t0"."__measure__1" AS "orders of a customer", COUNT(DISTINCT "t0"."customer_id") AS "customers" FROM (SELECT "orders"."customer_id" AS "customer_id", COUNT(1) AS "__measure__1" FROM "public"."orders" "orders" GROUP BY 1) "t0" GROUP BY 1

-- case calculation
SELECT (CASE WHEN ("orders"."total" >= 1000) THEN 'High' WHEN NOT ("orders"."total" >= 1000) THEN 'Low' ELSE NULL END) AS "Calculation_1", SUM("orders"."total") AS "sum" FROM "public"."orders" "orders" GROUP BY 1

-- boolean calculation
SELECT ("orders"."total" > 1000) AS "Calculation_2", COUNT(1) AS "n" FROM "public"."orders" "orders" GROUP BY 1

-- string calculation
SELECT LEFT("customers"."name", 3) AS "Calculation_3", COUNT(1) AS "n" FROM "public"."customers" "customers" GROUP BY 1

-- concatenation
SELECT (("customers"."country" || '-') || COALESCE("customers"."city", '')) AS "Calculation_4", COUNT(1) AS "n" FROM "public"."customers" "customers" GROUP BY 1

-- contains
SELECT COUNT(1) AS "n" FROM "public"."customers" "customers" WHERE (STRPOS(LOWER("customers"."email"), 'example') > 0)

-- bins
SELECT FLOOR(CAST("orders"."total" AS double precision) / 100) AS "bin", COUNT(1) AS "n" FROM "public"."orders" "orders" GROUP BY 1

-- cast to text
SELECT CAST("orders"."channel" AS TEXT) AS "channel" FROM "public"."orders" "orders" GROUP BY 1 ORDER BY 1 ASC NULLS FIRST

-- date as date
SELECT CAST("orders"."local_time" AS DATE) AS "d", COUNT(1) AS "n" FROM "public"."orders" "orders" GROUP BY 1

-- enum as text
SELECT CAST("orders"."status" AS TEXT) AS "status", COUNT(1) AS "n" FROM "public"."orders" "orders" GROUP BY 1

-- cursor in one request
--! end: CLOSE "SQL_CUR0001";COMMIT
BEGIN;declare "SQL_CUR0001" cursor with hold for SELECT "orders"."channel" AS "channel", SUM("orders"."total") AS "sum" FROM "public"."orders" "orders" GROUP BY 1 ORDER BY 1 ASC NULLS FIRST;fetch 2048 in "SQL_CUR0001"
