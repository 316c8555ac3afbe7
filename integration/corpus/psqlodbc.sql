-- psqlODBC (Excel, Access, SAS): savepoints glued to statements, cursors by declare and fetch, ISO dates.
--! protocol: simple
--! startup: TimeZone=UTC
--! session: SET DateStyle = 'ISO'
--! session: SET extra_float_digits = 2

-- plain
SELECT "channel", SUM("total") FROM "public"."orders" GROUP BY "channel"

-- in a block
--! end: COMMIT
BEGIN;SELECT "state", COUNT(*) FROM "public"."orders" GROUP BY "state" ORDER BY "state"

-- after a savepoint
--! begin: BEGIN
--! end: RELEASE _EXEC_SVP_0x1;COMMIT
SAVEPOINT _EXEC_SVP_0x1;SELECT COUNT(*), SUM("total") FROM "public"."orders" WHERE "id" > 100

-- cursor
--! begin: BEGIN;declare "SQL_CUR0x2" cursor with hold for SELECT "channel", SUM("total") FROM "public"."orders" GROUP BY "channel" ORDER BY 1
--! end: close "SQL_CUR0x2";COMMIT
fetch 100 in "SQL_CUR0x2"

-- excel rows
SELECT "orders"."id", "orders"."total", "orders"."placed_at", "orders"."is_gift" FROM "public"."orders" "orders" WHERE ("orders"."total">1990) ORDER BY "orders"."id"

-- excel join without escapes
SELECT "customers"."country", COUNT("orders"."id") FROM "public"."customers" "customers" LEFT OUTER JOIN "public"."orders" "orders" ON "customers"."id"="orders"."customer_id" GROUP BY "customers"."country"

-- access linked table
SELECT "public"."orders"."id", "public"."orders"."total" FROM "public"."orders" WHERE ("state" = 'returned' ) AND ("total" < 50 )

-- access keys
SELECT "id" FROM "public"."orders" WHERE ("id" = 1 OR "id" = 2 OR "id" = 3 OR "id" = 4) ORDER BY 1

-- sas
SELECT TXT_1."channel", COUNT(*) AS "ZSQL1", SUM(TXT_1."total") AS "ZSQL2" FROM "public"."orders" TXT_1 GROUP BY TXT_1."channel"

-- date literals
SELECT COUNT(*) FROM "public"."orders" WHERE "delivered_on" BETWEEN '2023-02-01'::date AND '2023-02-28'::date

-- timestamp literals
SELECT COUNT(*) FROM "public"."orders" WHERE "local_time" >= '2023-02-01 00:00:00'::timestamp AND "local_time" < '2023-03-01 00:00:00'::timestamp
