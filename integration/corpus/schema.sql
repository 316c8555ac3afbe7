-- A shop and what people do there: the tables that the statements of this folder ask.
CREATE TYPE order_status AS ENUM ('new', 'paid', 'shipped', 'returned', 'cancelled');
CREATE TYPE customer_tier AS ENUM ('bronze', 'silver', 'gold');
CREATE TABLE customers (id bigint PRIMARY KEY, name text NOT NULL, email varchar(120), city text, country char(2), tier customer_tier NOT NULL, active boolean NOT NULL,
	created_at timestamptz NOT NULL, birthday date, balance numeric(12,2), attributes jsonb, external_id uuid NOT NULL, tags text[]);
CREATE TABLE products (id int PRIMARY KEY, sku varchar(20) NOT NULL, name text NOT NULL, category text, price numeric(10,2) NOT NULL, weight double precision, discontinued boolean NOT NULL, launched date, specs jsonb);
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint NOT NULL, status order_status NOT NULL, state varchar(12) NOT NULL, placed_at timestamptz NOT NULL, shipped_at timestamptz, delivered_on date, local_time timestamp,
	total numeric(12,2) NOT NULL, discount numeric(5,4), currency char(3) NOT NULL, channel text, note text, is_gift boolean);
CREATE TABLE order_items (id bigint PRIMARY KEY, order_id bigint NOT NULL, product_id int NOT NULL, quantity int NOT NULL, unit_price numeric(10,2) NOT NULL, tax double precision);
CREATE TABLE events (id bigint NOT NULL, at timestamptz NOT NULL, session uuid, customer_id bigint, kind text NOT NULL, path text, duration_ms int, value double precision, payload jsonb, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE events_2023 PARTITION OF events FOR VALUES FROM ('2023-01-01 00:00+00') TO ('2024-01-01 00:00+00');
CREATE TABLE events_2024 PARTITION OF events FOR VALUES FROM ('2024-01-01 00:00+00') TO ('2025-01-01 00:00+00');
CREATE TABLE metrics (time timestamptz NOT NULL, host text NOT NULL, cpu double precision, mem bigint, PRIMARY KEY (time, host));
CREATE TABLE targets (day date PRIMARY KEY, target numeric(12,2) NOT NULL);

INSERT INTO customers SELECT i, (ARRAY['Ann','Bob','Zoë','Émile','Ödön','李雷','D''Arcy','Kim'])[i % 8 + 1] || ' ' || i, CASE WHEN i % 11 > 0 THEN 'user' || i || '@' || (ARRAY['example.com','Example.org','mail.test'])[i % 3 + 1] END,
	(ARRAY['Berlin','New York','São Paulo','Kolkata','',NULL])[i % 6 + 1], (ARRAY['DE','US','BR','IN'])[i % 4 + 1], (ARRAY['bronze','silver','gold'])[i % 3 + 1]::customer_tier, i % 5 > 0,
	timestamptz '2022-01-01 00:00+00' + i * interval '23 hours 17 minutes', CASE WHEN i % 7 > 0 THEN date '1950-01-01' + i * 37 END, CASE WHEN i % 13 > 0 THEN (i * 7919 % 100000) / 100.0 - 200 END,
	CASE WHEN i % 4 > 0 THEN jsonb_build_object('plan', (ARRAY['free','pro','team'])[i % 3 + 1], 'seats', i % 20, 'flags', jsonb_build_array('a', i % 2 = 0)) END,
	('00000000-0000-4000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, CASE WHEN i % 3 > 0 THEN ARRAY['vip', 'tag' || i % 4] END
FROM generate_series(1, 600) i;
INSERT INTO products SELECT i, 'SKU-' || lpad(i::text, 5, '0'), (ARRAY['Lamp','Chair','Desk','Rug','Käse'])[i % 5 + 1] || ' ' || i, CASE WHEN i % 17 > 0 THEN (ARRAY['Home','Office','Food','Garden'])[i % 4 + 1] END,
	(i * 104729 % 50000) / 100.0 + 1, CASE WHEN i % 6 > 0 THEN i / 8.0 END, i % 10 = 0, date '2019-12-28' + i * 9, jsonb_build_object('color', (ARRAY['red','blue'])[i % 2 + 1], 'size', i % 7)
FROM generate_series(1, 200) i;
INSERT INTO orders SELECT i, 1 + i * 31 % 620, (ARRAY['new','paid','shipped','returned','cancelled'])[i % 5 + 1]::order_status, (ARRAY['new','paid','shipped','returned','cancelled'])[i % 5 + 1],
	timestamptz '2023-01-01 00:00+00' + i * interval '2 hours 51 minutes 13 seconds', CASE WHEN i % 4 > 0 THEN timestamptz '2023-01-02 06:00+00' + i * interval '2 hours 51 minutes 20.25 seconds' END,
	CASE WHEN i % 4 > 1 THEN date '2023-01-04' + i / 8 END, timestamp '2023-01-01 09:30' + i * interval '2 hours 51 minutes', (i * 15485863::bigint % 8000) / 4.0, CASE WHEN i % 3 = 0 THEN (i % 40) / 100.0 END,
	(ARRAY['EUR','USD','INR'])[i % 3 + 1], (ARRAY['web','store','app','phone',NULL])[i % 5 + 1], CASE i % 9 WHEN 0 THEN '' WHEN 1 THEN 'please gift-wrap' WHEN 2 THEN 'Übergabe 50%' WHEN 3 THEN 'line' || chr(10) || 'two' END, CASE WHEN i % 12 > 0 THEN i % 8 = 0 END
FROM generate_series(1, 6000) i;
INSERT INTO order_items SELECT i, 1 + i / 3, 1 + i * 7919 % 200, 1 + i % 9, (i * 104729::bigint % 50000) / 100.0 + 1, CASE WHEN i % 10 > 0 THEN (i % 25) / 4.0 END FROM generate_series(1, 18000) i;
INSERT INTO events SELECT i, timestamptz '2023-01-01 00:00+00' + i * interval '1 hour 27 minutes 31.5 seconds', ('00000000-0000-4000-9000-' || lpad(to_hex(i / 6), 12, '0'))::uuid, CASE WHEN i % 7 > 0 THEN 1 + i * 13 % 600 END,
	(ARRAY['page_view','click','signup','purchase'])[CASE WHEN i % 3 > 0 THEN 1 WHEN i % 5 > 0 THEN 2 WHEN i % 2 > 0 THEN 3 ELSE 4 END], (ARRAY['/','/pricing','/blog/käse','/docs?q=1',NULL])[i % 5 + 1], i * 37 % 9000, CASE WHEN i % 8 > 0 THEN i % 64 / 4.0 END,
	jsonb_build_object('browser', (ARRAY['Firefox','Chrome','Safari'])[i % 3 + 1], 'ms', i % 500)
FROM generate_series(1, 10000) i;
INSERT INTO metrics SELECT timestamptz '2024-03-30 00:00+00' + m * interval '1 minute', 'host-' || h, (m * 37 + h * 11) % 400 / 4.0, (m * 1000003::bigint + h) % 17179869184 FROM generate_series(0, 2999) m, generate_series(1, 3) h;
INSERT INTO targets SELECT date '2023-01-01' + i, 1000 + i % 90 FROM generate_series(0, 729) i;

CREATE VIEW order_totals AS SELECT o.id AS order_id, o.customer_id, o.placed_at, o.state, o.total, sum(i.quantity * i.unit_price) AS items_total, count(*) AS items FROM orders o JOIN order_items i ON i.order_id = o.id GROUP BY o.id, o.customer_id, o.placed_at, o.state, o.total;
CREATE VIEW active_customers AS SELECT id, name, city, country, created_at, balance FROM customers WHERE active;
CREATE VIEW daily_sales AS SELECT date_trunc('day', local_time)::date AS day, channel, count(*) AS orders, sum(total) AS revenue FROM orders WHERE state <> 'cancelled' GROUP BY 1, 2;
VACUUM ANALYZE;
