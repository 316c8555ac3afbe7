-- People at psql and in notebooks.
--! protocol: simple
--! startup: TimeZone=UTC
--! startup: application_name=psql

-- monthly revenue
select to_char(placed_at, 'YYYY-MM') as month, sum(total) from orders group by 1 order by 1;

-- named months
select to_char(local_time, 'Mon YYYY') as month, count(*) from orders group by 1, date_trunc('month', local_time) order by date_trunc('month', local_time);

-- cohort
with first as (select customer_id, min(date_trunc('month', local_time)) as cohort from orders group by 1) select cohort, date_trunc('month', o.local_time) as month, count(distinct o.customer_id) from orders o join first f using (customer_id) group by 1, 2 order by 1, 2;

-- cohort by age
with first as (select customer_id, min(local_time) as t from orders group by 1) select extract(year from age(o.local_time, f.t)) * 12 + extract(month from age(o.local_time, f.t)) as months, count(*) from orders o join first f using (customer_id) group by 1 order by 1;

-- funnel
select count(distinct customer_id) filter (where kind = 'page_view') as viewed, count(distinct customer_id) filter (where kind = 'click') as clicked, count(distinct customer_id) filter (where kind = 'purchase') as bought from events;

-- share of total
select channel, sum(total) as s, round(100.0 * sum(total) / sum(sum(total)) over (), 2) as pct from orders group by channel order by s desc;

-- top per group
select * from (select country, c.id, sum(total) as s, row_number() over (partition by country order by sum(total) desc, c.id) as rn from orders o join customers c on c.id = o.customer_id group by country, c.id) x where rn <= 3 order by country, rn;

-- distinct on
select distinct on (customer_id) customer_id, id, total from orders order by customer_id, placed_at desc;

-- calendar
select d::date as day, count(o.id), coalesce(sum(o.total), 0) as revenue from generate_series('2023-02-01'::date, '2023-02-28', '1 day') d left join orders o on o.local_time::date = d::date group by 1 order by 1;

-- calendar of months
select to_char(m, 'YYYY-MM') as month, count(o.id) from generate_series(timestamp '2023-01-01', timestamp '2023-12-01', '1 month') m left join orders o on date_trunc('month', o.local_time) = m group by m order by m;

-- histogram
select width_bucket(total, 0, 2000, 10) as bucket, count(*), min(total), max(total) from orders group by 1 order by 1;

-- quartiles
select percentile_cont(array[0.25, 0.5, 0.75]) within group (order by total) from orders;

-- quartile each
select percentile_cont(0.25) within group (order by total), percentile_cont(0.5) within group (order by total), percentile_disc(0.75) within group (order by total) from orders;

-- mode
select mode() within group (order by channel) from orders;

-- string_agg
select currency, string_agg(distinct channel, ', ' order by channel) from orders group by currency order by currency;

-- array_agg
select customer_id, array_agg(id order by id) from orders where customer_id < 10 group by customer_id order by customer_id;

-- json
select attributes->>'plan' as plan, count(*), avg((attributes->>'seats')::int) from customers group by 1 order by 1;

-- json filter
select count(*) from customers where attributes @> '{"plan": "pro"}';

-- enum order
select tier, count(*) from customers group by tier order by tier desc;

-- uuid session
select count(distinct session) from events;

-- tags
select t, count(*) from customers, unnest(tags) t group by t order by t;

-- any tag
select count(*) from customers where 'vip' = any(tags);

-- email domain
select split_part(email, '@', 2) as domain, count(*) from customers group by 1 order by 1;

-- email domain by substring
select lower(substring(email from position('@' in email) + 1)) as domain, count(*) from customers group by 1 order by 1;

-- regexp_replace
select regexp_replace(path, '\?.*$', '') as p, count(*) from events group by 1 order by 1;

-- initcap
select initcap(channel) as c, count(*) from orders group by 1 order by 1;

-- format
select format('%s-%s', country, tier) as k, count(*) from customers group by 1 order by 1;

-- concat_ws
select concat_ws(', ', city, country) as place, count(*) from customers group by 1 order by 1;

-- lpad
select lpad(id::text, 8, '0') as code, total from orders where id < 20 order by 1;

-- greatest
select sum(greatest(total - 100, 0)), sum(least(total, 500)) from orders;

-- abs
select sum(abs(balance)), max(sign(balance)), sum(mod(id, 7)) from customers;

-- power
select round(sqrt(avg(total * total)), 4), exp(1.0) from orders;

-- corr
select corr(quantity, unit_price), regr_slope(unit_price, quantity) from order_items;

-- age in years
select date_part('year', age(date '2024-01-01', birthday)) as years, count(*) from customers group by 1 order by 1;

-- hours to ship
select avg(extract(epoch from shipped_at - placed_at) / 3600) as hours from orders;

-- days to ship
select date_trunc('day', shipped_at - placed_at) as took, count(*) from orders group by 1 order by 1;

-- interval average
select avg(shipped_at - placed_at) from orders;

-- late
select count(*) from orders where shipped_at > placed_at + interval '36 hours';

-- late by a day
select count(*) from orders where shipped_at > placed_at + interval '1 day';

-- weekdays
select extract(isodow from placed_at) as dow, count(*), avg(total) from orders group by 1 order by 1;

-- local day
select (placed_at at time zone 'Asia/Kolkata')::date as d, count(*) from orders group by 1 order by 1;

-- local hour
select extract(hour from placed_at at time zone 'Australia/Lord_Howe') as h, count(*) from orders group by 1 order by 1;

-- as a moment
select min(local_time at time zone 'Europe/Berlin'), max(local_time at time zone 'Europe/Berlin') from orders;

-- date_trunc with a zone
select date_trunc('day', placed_at, 'Europe/Berlin') as d, count(*) from orders group by 1 order by 1;

-- since a local midnight
select count(*), sum(total) from orders where placed_at >= '2023-03-26' and placed_at < '2023-03-27';

-- since a date
select count(*) from orders where placed_at::date = '2023-10-29';

-- moments
select id, placed_at, shipped_at from orders where id between 700 and 720 order by id;

-- moments as text
select id, placed_at::text, 'at ' || placed_at from orders where id between 700 and 710 order by id;

-- rollup
select coalesce(channel, 'all') as channel, coalesce(state, 'all') as state, sum(total) from orders group by rollup (channel, state) order by 1, 2, 3;

-- cube
select currency, is_gift, count(*), grouping(currency, is_gift) from orders group by cube (currency, is_gift) order by 4, 1, 2;

-- gaps
select id, placed_at - lag(placed_at) over (order by placed_at) as gap from orders where id < 50 order by id;

-- sessions by gap
select count(*) from (select customer_id, at, lag(at) over (partition by customer_id order by at) as before from events) e where before is null or at - before > interval '30 minutes';

-- moving average
select day, revenue, round(avg(revenue) over (order by day rows 6 preceding), 2) from (select day, sum(revenue) as revenue from daily_sales group by day) s order by day;

-- ntile
select q, count(*), min(total), max(total) from (select total, ntile(4) over (order by total, id) as q from orders) t group by q order by q;

-- except
select customer_id from orders except select id from customers order by 1;

-- intersect
select city from customers where active intersect select city from customers where not active order by 1;

-- values
select v.channel, v.fee, count(o.id) from (values ('web', 0.5), ('app', 0.25)) v(channel, fee) left join orders o on o.channel = v.channel group by 1, 2 order by 1;

-- lateral
select c.id, l.id, l.total from customers c cross join lateral (select o.id, o.total from orders o where o.customer_id = c.id order by o.id desc limit 2) l where c.id < 20 order by 1, 2;

-- recursive
with recursive n(i) as (select 1 union all select i + 1 from n where i < 5) select i, count(o.id) from n left join orders o on o.customer_id = n.i group by i order by i;

-- table sample
select count(*) > 0 from orders tablesample system (100);

-- view
select state, count(*), sum(items_total) from order_totals group by state order by state;

-- all columns of a view
select * from daily_sales where day between '2023-03-01' and '2023-03-05' order by day, channel;

-- all columns
select * from orders where id < 10 order by id;

-- whole row
select o from order_items o where id < 5 order by id;

-- boolean aggregates
select bool_and(active), bool_or(active), every(balance > 0) from customers;

-- nulls
select count(*) - count(channel) as missing, count(*) filter (where note = '') as empty from orders;

-- pattern
select count(*) from orders where note like '%50\%%' or note similar to '%(gift|two)%';

-- pattern alone
select count(*) from orders where note like '%50\%%';

-- between symmetric
select count(*) from orders where total between symmetric 500 and 100;

-- row comparison
select count(*) from orders where (customer_id, id) > (300, 10);

-- is distinct
select count(*) from orders where channel is distinct from 'web';

-- group by expression over a case
select case when extract(hour from local_time) < 12 then 'am' else 'pm' end as half, count(*) from orders group by 1 order by 1;

-- partition pruned
select count(*), sum(value) from events where at >= '2024-01-01 00:00+00';

-- one partition
select kind, count(*) from events_2024 group by kind order by kind;

-- copy
COPY (select channel, sum(total) from orders group by channel order by channel) TO STDOUT;

-- copy csv
COPY (select id, total, note from orders where id < 20 order by id) TO STDOUT WITH (FORMAT csv, HEADER);

-- ranking of revenue with ties
select customer_id, sum(total) as s, dense_rank() over (order by sum(total) desc) from orders group by customer_id order by s desc, customer_id limit 20;

-- exact ratio
select sum(case when state = 'returned' then total else 0 end) / sum(total) as rate, sum(total)::float8 / count(*) from orders;

-- trimmed
select count(*) from orders where coalesce(nullif(trim(note), ''), 'none') <> 'none';

-- to_char of numbers
select to_char(sum(total), 'FM999,999,990.00') as s, currency from orders group by currency order by currency;

-- week numbers
select to_char(local_time, 'IYYY-"W"IW') as week, count(*) from orders group by 1 order by 1;

-- day names
select trim(to_char(local_time, 'Day')) as day, extract(isodow from local_time) as n, count(*) from orders group by 1, 2 order by 2;

-- psql cursor
--! begin: BEGIN
--! begin: DECLARE _psql_cursor NO SCROLL CURSOR FOR SELECT id, total FROM orders WHERE total > 1900 ORDER BY id
--! end: CLOSE _psql_cursor
--! end: COMMIT
FETCH FORWARD 200 FROM _psql_cursor

-- char of two lengths
select c.country, o.currency, count(*) from orders o join customers c on c.country <> o.currency and c.id = o.customer_id where o.currency > c.country group by c.country, o.currency order by c.country, o.currency;

-- char not distinct
select count(*) from customers a join orders b on a.id = b.customer_id where a.country is distinct from b.currency and b.currency not in (select country from customers);

-- modes by group
select channel, mode() within group (order by state), string_agg(distinct currency::text, '/') from orders group by channel order by channel;
