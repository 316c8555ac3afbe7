-- Power BI: Npgsql, extended protocol in binary, folded Mashup queries ("_", "rows", "$Table"), limits of 1000001.
--! protocol: binary
--! startup: TimeZone=UTC
--! session: DISCARD ALL

-- group
select "rows"."channel" as "channel", sum("rows"."total") as "a0" from "public"."orders" "rows" group by "channel" order by "channel" limit 1000001

-- group without nulls
select "_"."channel", "_"."a0" from (select "rows"."channel" as "channel", sum("rows"."total") as "a0" from "public"."orders" "rows" group by "channel") "_" where not "_"."a0" is null limit 1000001

-- selected columns
select "rows"."channel" as "channel", count(*) as "a0" from (select "channel", "state" from "public"."orders" "$Table") "rows" group by "channel" limit 1000001

-- filtered
select "rows"."state" as "state", sum("rows"."total") as "a0" from (select "_"."state", "_"."total" from "public"."orders" "_" where "_"."local_time" >= timestamp '2023-02-01 00:00:00' and "_"."local_time" < timestamp '2023-05-01 00:00:00') "rows" group by "state" limit 1000001

-- distinct count with null
select "rows"."channel" as "channel", count(distinct("rows"."customer_id")) + max(case when "rows"."customer_id" is null then 1 else 0 end) as "a0" from (select "_"."channel", "_"."customer_id" from "public"."orders" "_") "rows" group by "channel" limit 1000001

-- ordered with nulls apart
select "_"."d" as "c2", "_"."a0" from (select "_"."d", "_"."a0", "_"."t0_0" as "t0_0", "_"."t1_0" as "t1_0" from (select "_"."d", "_"."a0", case when "_"."d" is not null then "_"."d" else date '1899-12-28' end as "t0_0", case when "_"."d" is null then 0 else 1 end as "t1_0" from (select "rows"."delivered_on" as "d", count(1) as "a0" from "public"."orders" "rows" group by "delivered_on") "_") "_") "_" order by "_"."t0_0", "_"."t1_0" limit 501

-- join of tables
select "rows"."category" as "category", sum("rows"."a") as "a0" from (select "$Outer"."quantity" * "$Outer"."unit_price" as "a", "$Inner"."category" from "public"."order_items" as "$Outer" left outer join "public"."products" as "$Inner" on ("$Outer"."product_id" = "$Inner"."id")) "rows" group by "category" limit 1000001

-- first rows
select "$Table"."id" as "id", "$Table"."name" as "name", "$Table"."city" as "city", "$Table"."created_at" as "created_at" from "public"."customers" "$Table" order by "$Table"."id" limit 1000 offset 0

-- all columns
select "$Table"."id" as "id", "$Table"."name" as "name", "$Table"."external_id" as "external_id", "$Table"."tier"::text as "tier" from "public"."customers" "$Table" order by "$Table"."id" limit 200

-- year and month
select extract(year from "rows"."local_time") as "y", extract(month from "rows"."local_time") as "m", sum("rows"."total") as "a0" from "public"."orders" "rows" group by 1, 2 order by 1, 2 limit 1000001

-- date of a moment
select cast("rows"."placed_at" as date) as "d", count(*) as "a0" from "public"."orders" "rows" group by 1 order by 1 limit 1000001

-- in list
select count(*) as "a0" from "public"."orders" "rows" where "rows"."state" in ('paid', 'new') and ("rows"."channel" = 'web' or "rows"."channel" is null)

-- parameters
--! $1: text paid
--! $2: numeric 500
select count(*) as "a0", avg("rows"."total") as "a1" from "public"."orders" "rows" where "rows"."state" = $1 and "rows"."total" > $2

-- min and max of all
select min("rows"."total") as "a0", max("rows"."total") as "a1", min("rows"."local_time") as "a2", max("rows"."local_time") as "a3" from "public"."orders" "rows"

-- text starts with
select count(1) as "a0" from "public"."customers" "_" where "_"."name" like 'An%' and "_"."name" is not null

-- as text
select "_"."id"::text as "t", "_"."total"::text as "u" from "public"."orders" "_" where "_"."id" < 50 order by "_"."id"

-- booleans as numbers
select sum(case when "_"."is_gift" then 1 else 0 end) as "gifts", cast(avg(cast("_"."total" as double precision)) as double precision) as "mean" from "public"."orders" "_"

-- view
select "rows"."country" as "country", sum("rows"."balance") as "a0" from "public"."active_customers" "rows" group by "country" limit 1000001

-- division
select "rows"."currency", sum("rows"."total") / nullif(count("rows"."total"), 0) as "a0" from "public"."orders" "rows" group by "rows"."currency" limit 1000001
