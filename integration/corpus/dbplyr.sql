-- dbplyr on RPostgres: extended in text, quoted names, nested q01, date parts as EXTRACT.
--! protocol: text
--! startup: TimeZone=UTC

-- summarise
SELECT "channel", COUNT(*) AS "n", SUM("total") AS "total" FROM "orders" GROUP BY "channel"

-- filter and mutate
SELECT "state", AVG("net") AS "net" FROM (SELECT "orders".*, "total" * (1.0 - COALESCE("discount", 0.0)) AS "net" FROM "orders" WHERE (NOT(("channel" IS NULL)))) AS "q01" GROUP BY "state"

-- narrow filter and mutate
SELECT "state", AVG("net") AS "net" FROM (SELECT "state", "total" * (1.0 - COALESCE("discount", 0.0)) AS "net" FROM "orders" WHERE (NOT(("channel" IS NULL)))) AS "q01" GROUP BY "state"

-- arrange and head
SELECT "id", "total" FROM "orders" ORDER BY "total" DESC, "id" LIMIT 10

-- count distinct
SELECT COUNT(DISTINCT "customer_id") AS "n" FROM "orders"

-- floor date
SELECT DATE_TRUNC('month', "local_time") AS "month", COUNT(*) AS "n" FROM "orders" GROUP BY DATE_TRUNC('month', "local_time") ORDER BY "month"

-- year
SELECT "y", COUNT(*) AS "n" FROM (SELECT EXTRACT(year FROM "delivered_on") AS "y" FROM "orders") AS "q01" GROUP BY "y"

-- weekday label
SELECT "wd", COUNT(*) AS "n" FROM (SELECT TO_CHAR("local_time", 'Dy') AS "wd" FROM "orders") AS "q01" GROUP BY "wd" ORDER BY "wd"

-- left join
SELECT "LHS"."id" AS "id", "total", "country" FROM (SELECT "id", "customer_id", "total" FROM "orders" WHERE ("id" <= 50)) AS "LHS" LEFT JOIN "customers" ON ("LHS"."customer_id" = "customers"."id") ORDER BY "LHS"."id"

-- semi join
SELECT COUNT(*) AS "n" FROM (SELECT "LHS"."id" FROM "customers" AS "LHS" WHERE EXISTS (SELECT 1 FROM "orders" AS "RHS" WHERE ("LHS"."id" = "RHS"."customer_id"))) AS "q01"

-- anti join
SELECT COUNT(*) AS "n" FROM (SELECT "LHS"."id" FROM "customers" AS "LHS" WHERE NOT EXISTS (SELECT 1 FROM "orders" AS "RHS" WHERE ("LHS"."id" = "RHS"."customer_id"))) AS "q01"

-- case_when
SELECT "size", COUNT(*) AS "n" FROM (SELECT CASE WHEN ("total" > 1500.0) THEN 'large' WHEN ("total" > 500.0) THEN 'medium' WHEN NOT (("total" > 500.0)) THEN 'small' END AS "size" FROM "orders") AS "q01" GROUP BY "size"

-- quantile
SELECT "channel", PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY "total") AS "median" FROM "orders" GROUP BY "channel"

-- window mean
SELECT "id", "total" - AVG("total") OVER (PARTITION BY "channel") AS "diff" FROM "orders" WHERE ("id" < 200) ORDER BY "id"

-- rank
SELECT "id", "r" FROM (SELECT "id", RANK() OVER (PARTITION BY "channel" ORDER BY "total" DESC) AS "r" FROM "orders") AS "q01" WHERE ("r" <= 2) ORDER BY "id"

-- in
SELECT COUNT(*) AS "n" FROM "orders" WHERE ("state" IN ('paid', 'new'))

-- grepl
SELECT COUNT(*) AS "n" FROM "customers" WHERE (("name") ~ ('^Ann'))

-- str_detect fixed
SELECT COUNT(*) AS "n" FROM "customers" WHERE (STRPOS("name", 'nn') > 0)

-- log and sqrt
SELECT SUM(SQRT("value")) AS "s", MAX(LN("value" + 1.0)) AS "l", MAX(POWER("value", 2.0)) AS "p" FROM "events"

-- pivot wider
SELECT "channel", MAX(CASE WHEN ("state" = 'paid') THEN "total" END) AS "paid", MAX(CASE WHEN ("state" = 'new') THEN "total" END) AS "new" FROM "orders" GROUP BY "channel"

-- slice max
SELECT "customer_id", "total" FROM (SELECT "customer_id", "total", RANK() OVER (PARTITION BY "customer_id" ORDER BY "total" DESC) AS "col01" FROM "orders") AS "q01" WHERE ("col01" <= 1) AND "customer_id" < 50
