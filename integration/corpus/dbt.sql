-- dbt: psycopg2, a JSON comment in front, tests as counts of failures, models as chains of WITH.
--! protocol: simple
--! startup: TimeZone=UTC
--! startup: application_name=dbt
--! session: BEGIN

-- not null
/* {"app": "dbt", "node_id": "test.shop.not_null"} */
select count(*) as failures, count(*) != 0 as should_warn, count(*) != 0 as should_error from ( select "customer_id" from "postgres"."public"."orders" where "customer_id" is null ) dbt_internal_test

-- unique
/* {"app": "dbt", "node_id": "test.shop.unique"} */
select count(*) as failures, count(*) != 0 as should_warn, count(*) != 0 as should_error from ( select id as unique_field, count(*) as n_records from "postgres"."public"."orders" where id is not null group by id having count(*) > 1 ) dbt_internal_test

-- unique with limit
select count(*) as failures from ( select sku as unique_field, count(*) as n_records from "postgres"."public"."products" where sku is not null group by sku having count(*) > 1 limit 500 ) dbt_internal_test

-- accepted values
select count(*) as failures, count(*) != 0 as should_warn from ( with all_values as ( select state as value_field, count(*) as n_records from "postgres"."public"."orders" group by state ) select * from all_values where value_field not in ( 'new','paid','shipped' ) ) dbt_internal_test

-- relationships
select count(*) as failures, count(*) != 0 as should_warn from ( with child as ( select customer_id as from_field from "postgres"."public"."orders" where customer_id is not null ), parent as ( select id as to_field from "postgres"."public"."customers" ) select from_field from child left join parent on child.from_field = parent.to_field where parent.to_field is null ) dbt_internal_test

-- expression is true
select count(*) as failures from ( select 1 from "postgres"."public"."orders" where not(total >= 0) ) dbt_internal_test

-- recency
with recency as ( select max(placed_at) as most_recent from "postgres"."public"."orders" ) select most_recent, cast(date_trunc('year', now()) as timestamp) as threshold from recency where most_recent < cast(now() - interval '1 day' as timestamp)

-- equal row count
with a as ( select 1 as id_dbtutils_test, count(*) as count_a from "postgres"."public"."order_items" ), b as ( select 1 as id_dbtutils_test, count(*) as count_b from "postgres"."public"."orders" ), final as ( select a.count_a, b.count_b, abs(a.count_a - b.count_b) as diff_count from a full join b on a.id_dbtutils_test = b.id_dbtutils_test ) select * from final

-- at least one
select count(*) as failures from ( select count(note) as filler_column from "postgres"."public"."orders" having count(note) = 0 ) dbt_internal_test

-- source freshness
select max(placed_at) as max_loaded_at, date_trunc('year', now()) as snapshotted_at from "postgres"."public"."orders" where placed_at < timestamptz '2000-01-01 00:00+00'

-- incremental bound
select max(placed_at) from "postgres"."public"."orders"

-- incremental rows
select id, customer_id, placed_at, total from "postgres"."public"."orders" where placed_at > (select coalesce(max(e.at), '1900-01-01') from "postgres"."public"."events" e where e.kind = 'signup') order by id

-- staging model
with source as ( select * from "postgres"."public"."order_items" ), renamed as ( select id as order_item_id, order_id, product_id, quantity, unit_price, quantity * unit_price as item_total, tax from source ) select * from renamed where order_item_id <= 300

-- mart model
with customers as ( select id as customer_id, name as customer_name, country from "postgres"."public"."customers" ), orders as ( select * from (select id, customer_id, placed_at, total, state from "postgres"."public"."orders") x ), customer_orders as ( select customer_id, min(placed_at) as first_order, max(placed_at) as most_recent_order, count(id) as number_of_orders, sum(total) as lifetime_value from orders where state != 'cancelled' group by customer_id ), final as ( select customers.customer_id, customers.customer_name, customers.country, customer_orders.first_order, customer_orders.most_recent_order, coalesce(customer_orders.number_of_orders, 0) as number_of_orders, customer_orders.lifetime_value from customers left join customer_orders using (customer_id) ) select * from final

-- date spine
with days as ( select generate_series(date '2023-01-01', date '2023-03-01', interval '1 day')::date as date_day ) select d.date_day, count(o.id) as orders, coalesce(sum(o.total), 0) as revenue from days d left join "postgres"."public"."orders" o on o.local_time::date = d.date_day group by 1 order by 1

-- date spine in from
select d.date_day::date, count(o.id) as orders from generate_series(timestamp '2023-01-01', timestamp '2023-03-01', interval '1 day') as d(date_day) left join "postgres"."public"."orders" o on date_trunc('day', o.local_time) = d.date_day group by 1 order by 1

-- dedupe
select id, customer_id, total from ( select id, customer_id, total, row_number() over (partition by customer_id order by placed_at desc, id) as rn from "postgres"."public"."orders" ) t where rn = 1 order by customer_id

-- pivot
select customer_id, sum(case when state = 'new' then 1 else 0 end) as "new", sum(case when state = 'paid' then 1 else 0 end) as "paid", sum(case when state = 'shipped' then total else 0 end) as "shipped_total" from "postgres"."public"."orders" group by customer_id

-- surrogate key
select md5(cast(coalesce(cast(order_id as TEXT), '_dbt_utils_surrogate_key_null_') || '-' || coalesce(cast(product_id as TEXT), '_dbt_utils_surrogate_key_null_') as TEXT)) as item_key, quantity from "postgres"."public"."order_items" where id < 100

-- union of relations
select cast('orders' as TEXT) as src, count(*) as n from "postgres"."public"."orders" union all select cast('items' as TEXT), count(*) from "postgres"."public"."order_items" union all select cast('events' as TEXT), count(*) from "postgres"."public"."events"

-- snapshot check
select count(*) as failures from ( select c.id from "postgres"."public"."customers" c join "postgres"."public"."orders" o on o.customer_id = c.id where o.placed_at < c.created_at ) dbt_internal_test

-- month over month
with m as ( select date_trunc('month', local_time)::date as month, sum(total) as revenue from "postgres"."public"."orders" group by 1 ) select month, revenue, lag(revenue) over (order by month) as prior, round((revenue - lag(revenue) over (order by month)) / nullif(lag(revenue) over (order by month), 0) * 100, 2) as pct from m order by month

-- safe cast
select count(*) as n, sum(coalesce(discount, 0)::numeric(10,4) * total) as discounts, count(*) filter (where coalesce(trim(note), '') = '') as blank from "postgres"."public"."orders"

-- sessions
select session, min(at) as started, max(at) as ended, count(*) as n from "postgres"."public"."events" group by session having count(*) > 5 order by started limit 20

-- date difference
select delivered_on - local_time::date as days, count(*) as n from "postgres"."public"."orders" group by 1 order by 1

-- first and last
select customer_id, first_value(state) over w as first_state, total, sum(total) over w as running from "postgres"."public"."orders" where customer_id < 20 window w as (partition by customer_id order by id) order by customer_id, id
