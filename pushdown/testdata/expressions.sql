-- One expression over the table orders a line: types and values are compared with PostgreSQL's.
1
-1
2147483647
2147483648
-2147483648
9223372036854775807
9223372036854775808
1.5
1.50
.5
5.
1e3
1.5e-3
'x'
NULL
true
DATE '2024-02-29'
TIMESTAMP '2024-02-29 12:34:56.789'
TIMESTAMPTZ '2024-02-29 12:34:56+02'
TIMESTAMPTZ '2024-02-29'
TIME '12:34:56.5'
'5'::int
'5.25'::numeric
'5.25'::numeric(10,3)
'1e2'::float8
'0.1'::real
'true'::boolean
'abc'::varchar(2)
'abc'::char(5)
5::bigint
5::smallint
5::numeric(6,2)
5.255::numeric(6,3)
1.5::float8
1.1::real
qty
small
big
amount
rate
weight
score
status
kind
flag
paid
day
at
seen
clock
qty + 1
1 + qty
qty + small
small + small
small + 1
qty - big
qty * 2
small * small
qty / 7
qty % 7
-qty / 7
-qty % 7
small / small
big / 2
big % 10
-amount
+amount
abs(qty)
abs(small)
abs(rate)
mod(qty, 7)
mod(small, 7)
mod(amount, 7)
amount + 1
amount - 1.5
amount + rate
amount * 2
amount * rate
rate * rate
qty * rate
qty + amount
3 - rate
amount % 7
amount / 2
weight + 1
weight + weight
weight * 2.5
weight / score
score * 2
score - qty
score + amount
-score
abs(weight)
score / 0.5
day + 1
1 + day
day - 1
day - small
day - DATE '2024-01-01'
day - '2024-01-01'
day - day
at - at
day + '1'
at + INTERVAL '1 day'
qty = 5
qty = 5.0
qty < 5.5
qty <> 5.5
5.5 >= qty
qty = small
qty = big
qty = amount
amount = qty
qty < rate
amount = rate
amount > 12.345
amount = 12.340
rate < 0.12345
big > 9223372036854775808
big < -9223372036854775809
big > 1e30
small = 100000
weight > 1.5
weight = 1.1
weight = '1.1'
weight IN (1.1, 2.2, 4.5)
score = 1
score > qty
score < amount
weight < score
weight < qty
qty = '5'
amount = '5.5'
score = '1.5'
qty BETWEEN 1 AND 10
qty NOT BETWEEN 1 AND 10.5
qty BETWEEN SYMMETRIC 10 AND 1
qty NOT BETWEEN SYMMETRIC 10 AND small
qty BETWEEN SYMMETRIC small AND NULL
day NOT BETWEEN SYMMETRIC '2024-06-30' AND '2024-01-01'
amount BETWEEN SYMMETRIC qty AND weight
(qty, small) < (10, 5)
(qty, small, big) <= (big, qty, 5)
(qty, amount) > (5, 2.5)
(qty, kind) >= (small, 'b')
(day, id) < (at, 5)
(qty, NULL) < (10, 5)
(NULL, qty) < (10, 5)
(qty, small) = (small, 5)
(qty, small) <> (small, 5)
(qty, NULL) = (5, small)
(qty, NULL) <> (5, small)
ROW(qty) < ROW(5)
(qty, score) < (5, weight)
NOT (qty, small) < (small, 5)
(qty, small) IN ((1, 2), (5, small), (small, NULL))
(qty, small) NOT IN ((1, 2), (5, small), (small, NULL))
(qty, kind) IN ((1, 'a'))
(qty, small) IS DISTINCT FROM (small, 5)
(qty, NULL) IS NOT DISTINCT FROM (5, small)
kind SIMILAR TO 'a%'
kind NOT SIMILAR TO '%(a|b)_'
kind SIMILAR TO '[a-c]+'
kind SIMILAR TO 'a#%%' ESCAPE '#'
status SIMILAR TO NULL
flag SIMILAR TO 'a%'
amount BETWEEN 0 AND 100
day BETWEEN '2024-01-01' AND '2024-06-30'
day = TIMESTAMP '2024-01-05 00:00'
day < TIMESTAMP '2024-01-05 12:00'
day >= TIMESTAMP '2024-01-05 12:00'
day = TIMESTAMP '2024-01-05 12:00'
TIMESTAMP '2024-01-05 12:00' > day
day < at
day < seen
at < seen
at > '2024-01-05'
at > DATE '2024-01-05'
seen >= '2024-01-05 10:00:00Z'
seen >= '2024-01-05T10:00:00+02:30'
seen >= DATE '2024-01-05'
clock < '12:30'
status = 'a'
status = 'A '
status < 'b'
kind >= 'b'
status = kind
flag = 'x'
flag = 'x   '
flag IN ('x', 'ab')
flag <> 'xyzt'
flag = kind
flag = status
flag < 'b'
flag = flag
status IN ('a', 'open', NULL)
status NOT IN ('a', 'open')
status NOT IN ('a', NULL)
qty IN (1, 2, 3)
qty IN (1, 2.5, '3')
qty IN (qty, 5)
qty IN (NULL)
qty NOT IN (1, NULL)
amount IN (1, 2.5, 12.345)
NULL IN (1, 2)
1 IN (1, 2)
qty = ANY (ARRAY[1, 2, 3])
qty <> ALL (ARRAY[1, 2, 3])
status = ANY (ARRAY['a', 'b'])
qty = ANY ('{1,2}')
qty > ANY (ARRAY[1, 2])
status LIKE 'o%'
status LIKE '%e_'
status NOT LIKE 'a%'
kind LIKE 'x\%'
kind LIKE 'x\'
kind ILIKE 'AB%'
flag LIKE 'x'
flag LIKE 'x%'
status LIKE kind
status ~ 'a'
status || kind
lower(status)
qty IS NULL
qty IS NOT NULL
paid IS TRUE
paid IS NOT TRUE
paid IS FALSE
paid IS NOT FALSE
paid IS UNKNOWN
paid IS NOT UNKNOWN
qty IS DISTINCT FROM 5
qty IS NOT DISTINCT FROM small
qty IS DISTINCT FROM NULL
amount IS DISTINCT FROM rate
amount IS DISTINCT FROM 12.345
NOT paid
paid AND qty > 5
paid OR qty > 5
paid = true
paid < (qty > 5)
(qty > 5) = paid
paid = 't'
CASE WHEN paid THEN 1 ELSE 2 END
CASE WHEN paid THEN 1 END
CASE WHEN paid THEN qty ELSE big END
CASE WHEN paid THEN qty ELSE 1.5 END
CASE WHEN paid THEN amount ELSE 0 END
CASE WHEN paid THEN amount ELSE 0.00 END
CASE WHEN paid THEN amount END
CASE WHEN paid THEN status ELSE kind END
CASE WHEN paid THEN kind ELSE status END
CASE WHEN paid THEN 'yes' ELSE 'no' END
CASE WHEN paid THEN status ELSE 'none' END
CASE WHEN paid THEN flag ELSE status END
CASE WHEN paid THEN flag END
CASE WHEN paid THEN day ELSE at END
CASE WHEN paid THEN at ELSE seen END
CASE WHEN paid THEN weight ELSE amount END
CASE WHEN paid THEN qty ELSE score END
CASE WHEN paid THEN 'x' ELSE NULL END
CASE qty WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'many' END
CASE status WHEN 'a' THEN 1 WHEN NULL THEN 2 END
CASE amount WHEN 12.345 THEN 1 ELSE 0 END
CASE 'a' WHEN status THEN 1 ELSE 0 END
COALESCE(qty, 0)
COALESCE(qty, small, 0)
COALESCE(qty, big)
COALESCE(rate, 0)
COALESCE(rate, 0.0000)
COALESCE(amount, 0)
COALESCE(status, 'none')
COALESCE(status, kind)
COALESCE(at, day)
COALESCE(NULL, qty)
NULLIF(qty, 0)
NULLIF(small, 1.5)
NULLIF(small, 5.0)
NULLIF(status, 'a')
NULLIF(kind, status)
NULLIF(amount, 0)
NULLIF(weight, 1)
GREATEST(qty, 0)
GREATEST(qty)
GREATEST(qty, NULL)
GREATEST(NULL, NULL)
GREATEST(qty, small, big)
LEAST(qty, big, 5, NULL)
LEAST(qty, small, big, 5, 6)
GREATEST(qty, amount)
GREATEST(amount, rate)
LEAST(amount, rate, 0, 12.5000)
LEAST(rate, amount, qty) + 1
GREATEST(amount, 0) > rate
LEAST(weight, 1)
GREATEST(weight, score)
GREATEST(score, qty)
GREATEST(status, 'b')
LEAST(status, kind, NULL)
LEAST(flag, 'x')
GREATEST(flag, status)
GREATEST(paid, false)
GREATEST(day, '2020-01-01')
GREATEST(day, at)
LEAST(at, seen)
GREATEST(qty / 0, 1)
GREATEST(qty, 'x')
GREATEST(1, 2.50, 2.5)
LEAST(qty, status)
qty::bigint
qty::smallint
qty::numeric
qty::numeric(12,2)
qty::numeric(3,2)
qty::float8
qty::real
qty::text
qty::varchar
amount::int
amount::bigint
amount::numeric
amount::numeric(12,3)
amount::numeric(12,1)
amount::numeric(12,0)
amount::float8
weight::float8
weight::int
weight::smallint
weight::bigint
(weight * 1e10)::bigint
(weight * 1e10)::int
score::int
score::smallint
score::bigint
(score * 1e10)::bigint
(amount::float8 + 0.5)::int
(qty + 0.5::float8)::int
score::real
score::numeric
paid::int
paid::text
status::text
status::int
kind::bigint
flag::smallint
qty::text::int
(' ' || qty::text || ' ')::bigint
('9' || qty)::smallint
CASE WHEN status = 'x' THEN status::int ELSE 1 END
' 12 '::text::int
'0x1F'::text::int
kind::varchar
kind::varchar(3)
flag::text
flag::varchar
status::char(3)
day::timestamp
day::timestamptz
day::text
at::date
at::timestamptz
at::time
seen::date
seen::timestamp
at::timestamp(0)
CAST(qty AS decimal)
CAST(EXTRACT(YEAR FROM day) AS bigint)
EXTRACT(YEAR FROM day)
EXTRACT(month FROM at)
EXTRACT(day FROM seen)
EXTRACT(quarter FROM day)
EXTRACT(week FROM day)
EXTRACT(isoyear FROM day)
EXTRACT(dow FROM day)
EXTRACT(isodow FROM day)
EXTRACT(doy FROM day)
EXTRACT(hour FROM at)
EXTRACT(minute FROM at)
EXTRACT(second FROM at)
EXTRACT(epoch FROM at)
EXTRACT(epoch FROM day)
EXTRACT(epoch FROM seen)
EXTRACT(hour FROM day)
EXTRACT(century FROM day)
EXTRACT(YEAR FROM '2024-01-01')
date_part('year', day)
date_part('hour', day)
date_part('second', at)
date_part('epoch', seen)
date_part('Dow', at)
date_trunc('month', day)
date_trunc('month', at)
date_trunc('week', at)
date_trunc('quarter', seen)
date_trunc('DAY', at)
date_trunc('hour', seen)
date_trunc('decade', at)
date_trunc('month', at)::date
to_date('2024-02-01', 'YYYY-MM-DD')
to_timestamp('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
to_char(day, 'YYYY')
kind COLLATE "C"
kind COLLATE "C" < 'b'
now()
current_date
round(amount)
(qty + 1) * (small - 1) - 5
amount * 1.1 + rate * 2 - 3
1 + 2 * 3
1.5 * 2
1.50 + 2
7 / 2
2147483647 + qty
NULLIF(qty, big)
NULLIF(day, at)
NULLIF(at, seen)
NULLIF(qty, score)
NULLIF(flag, 'x')
NULLIF(flag, kind)
NULLIF('a', status)
NULLIF(qty, NULL)
NULLIF(NULL, qty)
qty = 9223372036854775807
qty < -9223372036854775808
small = 32768
'5' + qty
'5' * amount
qty = -5
amount = -5.5
day <> DATE '2024-01-05'
day IN ('2024-01-05', '2024-01-06')
day IN ('2024-01-05', TIMESTAMP '2024-01-06 12:00')
at::date = '2024-01-05'
date_trunc('month', at) = '2024-01-01'
date_trunc('month', day) = '2024-01-01'
EXTRACT(YEAR FROM day) = 2024
EXTRACT(YEAR FROM day) IN (2023, 2024)
EXTRACT(second FROM at) > 30.5
(qty > 5) IS TRUE AND NOT (small > 3)
qty > 5 OR NULL
NOT NULL
status IN ('a')
status NOT IN ('')
status LIKE ''
status LIKE '%'
kind LIKE '_'
kind LIKE '\_%'
status BETWEEN 'a' AND 'c'
CASE WHEN paid THEN day ELSE '2024-01-01' END
CASE WHEN paid THEN '1' ELSE qty END
CASE WHEN qty > 0 THEN qty / qty END
CASE WHEN paid THEN NULL ELSE NULL END
COALESCE('x', kind)
COALESCE(day, '2024-01-01')
COALESCE(weight, 1.5)
COALESCE(weight, score)
COALESCE(qty, amount)
COALESCE(qty::numeric, small)
qty::numeric / 7
qty::numeric * amount
qty::numeric + rate
score::bigint
amount::text
'2024-01-05 10:00'::date
'2024-01-05'::timestamp::date
'10:30:15.25'::time
' 42 '::int
'yes'::boolean
'2024-13-01'::date
'infinity'::date
'now'::timestamp
'2024-01-01 24:00:00'::timestamp
'2024-01-01 10:00+25'::timestamptz
'NaN'::numeric
COALESCE(rate, 0) > 0.5
COALESCE(rate, 0) = 0
COALESCE(rate, 0) IN (0, 0.5, 0.1234)
(CASE WHEN paid THEN rate ELSE 1 END) BETWEEN 0 AND 0.75
(CASE WHEN paid THEN rate ELSE COALESCE(rate, 1) END) < amount
(CASE WHEN paid THEN rate ELSE 1 END) IS NULL
(CASE WHEN paid THEN rate WHEN qty > 3 THEN NULL ELSE 1.5 END) IS DISTINCT FROM 1.5
NULLIF(COALESCE(rate, 0), 0)
COALESCE(amount, 0)
COALESCE(amount, 0) + 1
rate::text
at::text
seen::text
clock::text
amount::varchar
(amount * rate)::text
(day + 1)::text
DATE '2024-02-29'::text
TIMESTAMP 'infinity'::text
1.50::text
weight::text
score::text
EXTRACT(YEAR FROM day)::text
CASE WHEN paid THEN status ELSE kind END
CASE WHEN qty > 3 THEN qty::text WHEN paid THEN kind ELSE status END
COALESCE(status, qty::text, kind)
NULLIF(status, qty::text)
(CASE WHEN paid THEN status ELSE kind END) = 'new'
(CASE WHEN paid THEN kind ELSE qty::text END) < 'b'
qty::text < '5'
qty::text < small::text
qty::text = small::text
qty::text IN ('1', '2', '12')
qty::text LIKE '1%'
qty::text || kind
length(qty::text)
length(CASE WHEN paid THEN kind ELSE amount::text END)
CASE WHEN paid THEN flag ELSE 'ab'::char(4) END
COALESCE(flag, 'x'::char(4))
round(amount, 1)
round(amount, -2)
round(amount / 7, 2)
round(qty / 7.0, 20)
trunc(amount)
ceil(qty / 7.0)
floor(amount, 1)
round(qty)
round(amount, qty % 3)
round(amount, 1) + rate
'a' || kind
kind || ', ' || status
status || kind
qty || kind
kind || amount
'x' || qty
'x' || 'y'
(qty > 3) || kind
kind || NULL
kind || day
kind || (qty::float8)
concat(kind, ', ', qty, NULL)
concat(status)
concat(name)
concat(kind, day)
concat(1, 'a')
concat(NULL)
concat(qty > 3)
upper(kind)
upper(status)
lower('ABC')
lower(kind COLLATE "C")
upper('é')
left(kind, 2)
right(kind, -1)
left(kind, qty % 3)
replace(kind, 'a', 'bb')
trim(kind)
trim(both 'ab' from kind)
trim(leading from status)
rtrim(kind, 'e ')
strpos(kind, 'a')
split_part(kind, '-', 2)
split_part(status, 'a', -1)
lpad(qty::text, 8, '0')
rpad(kind, 5)
repeat(status, 2)
reverse(kind)
md5(kind)
initcap(kind COLLATE "C")
sign(price)
sign(qty)
sqrt(abs(qty))
kind ~ '^a[a-z]+$'
kind !~ 'b|c'
status ~* 'A'
kind COLLATE "C" !~* '\d'
NOT kind ~ 'a'
textregexeq(kind, '.')
position('a' in kind)
position('' in kind)
concat_ws(', ', kind, status)
concat_ws(kind, status, NULL, qty, paid, day)
concat_ws(status, kind)
concat_ws(NULL, kind, status)
concat_ws('-', kind, NULL, 'x', 5)
concat_ws('-', NULL, NULL)
concat_ws('-', flag, kind)
concat(paid, kind, NOT paid)
format('%s', kind)
format('%s-%s: 100%%', kind, qty)
format('%2$s, %1$s and %1$s', kind, paid)
format('%2$s%s', kind, status, small)
format('%1$s and %s', kind, amount)
format('plain %%')
format('%s %s', kind)
format('%s', kind, qty)
format('%I', kind)
format('%5s', kind)
format(kind, 'x')
format('%s', NULL)
num_nulls(qty, status, NULL, 5)
num_nonnulls(qty, status, paid)
mod(amount, 2.5)
mod(qty, 2.5)
mod(7, 4::bigint)
div(amount, 7)
div(qty, 2.5)
gcd(qty, 12)
gcd(big, qty)
lcm(qty, 6)
sqrt(abs(amount))
sqrt(2.0)
width_bucket(amount, 0, 100, 7)
width_bucket(amount, 100, -5.5, 10)
width_bucket(qty, 0, 10, 5)
translate(kind, 'ab', 'x')
overlay(kind PLACING 'xyz' FROM 2)
overlay(kind PLACING 'xyz' FROM 2 FOR 1)
ascii(kind)
chr(small)
chr(65)
to_hex(qty)
to_hex(big)
starts_with(kind, 'a')
kind ^@ 'a'
status ^@ 'op'
kind ^@ status
flag ^@ 'a'
bit_length(kind)
to_char(amount, 'FM999,999,990.00')
to_char(qty, '9999')
to_char(big, '09')
to_char(score, '990.99')
to_char(small, 'FM000')
to_char(amount, '9D99')
to_char(amount, 'L9.99')
to_char(weight, '9.9')
to_char(amount, kind)
