-- Hibernate and plain JDBC: binary results, aliases of generated names, parameters with types, READ COMMITTED blocks.
--! protocol: binary
--! startup: TimeZone=UTC
--! startup: DateStyle=ISO
--! session: SET extra_float_digits = 3
--! session: BEGIN

-- count
select count(o1_0.id) from orders o1_0

-- by state
--! $1: varchar paid
select o1_0.id,o1_0.total from orders o1_0 where o1_0.state=$1 and o1_0.id<300 order by o1_0.id

-- page
--! $1: int4 40
--! $2: int4 20
select o1_0.id,o1_0.total,o1_0.placed_at from orders o1_0 order by o1_0.id offset $1 rows fetch first $2 rows only

-- page of five
--! $1: int8 20
select c1_0.id,c1_0.name,c1_0.balance from customers c1_0 order by c1_0.id fetch first $1 rows only

-- aggregate
select o1_0.channel,count(*),sum(o1_0.total),avg(o1_0.total) from orders o1_0 group by o1_0.channel order by o1_0.channel

-- join fetch
--! $1: bpchar DE
select o1_0.id,c1_0.id,c1_0.name from orders o1_0 join customers c1_0 on c1_0.id=o1_0.customer_id where c1_0.country=$1 and o1_0.id<500 order by o1_0.id

-- range of moments
--! $1: timestamptz 2023-03-01 00:00:00+00
--! $2: timestamptz 2023-04-01 00:00:00+00
select sum(o1_0.total) from orders o1_0 where o1_0.placed_at between $1 and $2

-- range of moments of unknown type
--! $1: unknown 2023-03-01 00:00:00+00
--! $2: unknown 2023-04-01 00:00:00+00
select count(*) from orders o1_0 where o1_0.placed_at>=$1 and o1_0.placed_at<$2

-- date range
--! $1: date 2023-03-01
select count(*) from orders o1_0 where o1_0.delivered_on>=$1

-- in
--! $1: int8 1
--! $2: int8 2
--! $3: int8 32
select o1_0.id from orders o1_0 where o1_0.customer_id in ($1,$2,$3) order by o1_0.id

-- array parameter
--! $1: int8[] {1,2,32}
select o1_0.id from orders o1_0 where o1_0.customer_id = any ($1) order by o1_0.id

-- text array parameter
--! $1: varchar[] {web,app}
select count(*) from orders o1_0 where o1_0.channel = any ($1)

-- year
select extract(year from o1_0.local_time),count(*) from orders o1_0 group by extract(year from o1_0.local_time) order by 1

-- like lower
--! $1: varchar %bob%
select count(*) from customers c1_0 where lower(c1_0.name) like $1 escape ''

-- case
select case when o1_0.total>1000 then 'L' else 'S' end,count(o1_0.id) from orders o1_0 group by 1 order by 1

-- exists
select count(c1_0.id) from customers c1_0 where exists(select 1 from orders o1_0 where o1_0.customer_id=c1_0.id and o1_0.total>1900)

-- subquery
select c1_0.id,(select count(*) from orders o1_0 where o1_0.customer_id=c1_0.id) from customers c1_0 where c1_0.id<30 order by c1_0.id

-- boolean
--! $1: bool t
select count(*) from customers c1_0 where c1_0.active=$1

-- double
--! $1: float8 10.5
select count(*),max(e1_0.value) from events e1_0 where e1_0.value>$1

-- numeric parameter
--! $1: numeric 1500.50
select count(*),min(o1_0.total) from orders o1_0 where o1_0.total>=$1

-- coalesce
--! $1: varchar none
select coalesce(o1_0.channel,$1),count(*) from orders o1_0 group by 1 order by 1

-- concat
select (c1_0.name||' <'||c1_0.email||'>') from customers c1_0 where c1_0.id<40 order by c1_0.id

-- date_trunc of a moment
select date_trunc('month',o1_0.placed_at),sum(o1_0.total) from orders o1_0 group by 1 order by 1

-- cast as date
select cast(o1_0.placed_at as date),count(*) from orders o1_0 group by 1 order by 1

-- rows of moments
select o1_0.id,o1_0.placed_at,o1_0.shipped_at,o1_0.delivered_on from orders o1_0 where o1_0.customer_id=32 order by o1_0.id
