-- A retailer of three channels, in small: the shapes of TPC-DS, with tables and statements of our own.
CREATE TABLE days (day_id int PRIMARY KEY, day date NOT NULL, year int NOT NULL, month int NOT NULL, month_no int NOT NULL, week_no int NOT NULL, weekday char(9) NOT NULL);
CREATE TABLE items (item_id int PRIMARY KEY, code char(8) NOT NULL, brand char(20), class char(20), category char(20), maker char(12), color text, price numeric(7,2), manager int);
CREATE TABLE shops (shop_id int PRIMARY KEY, name varchar(30), state char(2), zip char(10), area int);
CREATE TABLE places (place_id int PRIMARY KEY, city varchar(30), state char(2), zip char(10), country text);
CREATE TABLE people (person_id int PRIMARY KEY, first_name char(12), last_name char(16), place_id int, born int);
CREATE TABLE sales (ticket int NOT NULL, item_id int NOT NULL, day_id int, shop_id int, person_id int, quantity int, price numeric(7,2), paid numeric(9,2), profit numeric(9,2), PRIMARY KEY (ticket, item_id));
CREATE TABLE returns (ticket int NOT NULL, item_id int NOT NULL, day_id int, person_id int, quantity int, amount numeric(9,2), PRIMARY KEY (ticket, item_id));
CREATE TABLE orders (order_no int NOT NULL, item_id int NOT NULL, day_id int, ship_day_id int, warehouse_id int, person_id int, quantity int, paid numeric(9,2), profit numeric(9,2), PRIMARY KEY (order_no, item_id));
CREATE TABLE stock (day_id int NOT NULL, item_id int NOT NULL, warehouse_id int NOT NULL, on_hand int, PRIMARY KEY (day_id, item_id, warehouse_id));

INSERT INTO days SELECT i, date '2000-01-01' + i, extract(year FROM date '2000-01-01' + i), extract(month FROM date '2000-01-01' + i),
	12 * (extract(year FROM date '2000-01-01' + i)::int - 2000) + extract(month FROM date '2000-01-01' + i)::int, i / 7, to_char(date '2000-01-01' + i, 'Day')
FROM generate_series(0, 1095) i;
INSERT INTO items SELECT i, 'I' || lpad(i::text, 6, '0'), 'brand #' || i % 17, 'class ' || i % 9, (ARRAY['Books','Music','Shoes','Home','Sports'])[i % 5 + 1],
	CASE WHEN i % 31 > 0 THEN 'maker ' || i % 23 END, (ARRAY['red','powder','khaki','floral','deep',NULL])[i % 6 + 1], (i * 7919 % 20000) / 100.0, i % 50
FROM generate_series(1, 600) i;
INSERT INTO shops SELECT i, CASE WHEN i % 7 > 0 THEN 'shop ' || i % 5 END, (ARRAY['TN','GA','OH'])[i % 3 + 1], lpad((31000 + i * 37 % 900)::text, 5, '0'), 1000 + 77 * i FROM generate_series(1, 12) i;
INSERT INTO places SELECT i, 'city ' || i % 40, (ARRAY['TN','GA','OH','IL','CA'])[i % 5 + 1], lpad((31000 + i * 53 % 900)::text, 5, '0'), CASE WHEN i % 9 > 0 THEN 'United States' END FROM generate_series(1, 800) i;
INSERT INTO people SELECT i, CASE WHEN i % 13 > 0 THEN 'First' || i % 90 END, CASE WHEN i % 11 > 0 THEN 'Last' || i % 170 END, i * 7 % 801, 1930 + i % 70 FROM generate_series(1, 2000) i;
INSERT INTO sales SELECT i / 4, 1 + (i * 7919::bigint % 600)::int, CASE WHEN i % 97 > 0 THEN i * 31 % 1096 END, CASE WHEN i % 89 > 0 THEN 1 + i % 12 END,
	CASE WHEN i % 83 > 0 THEN 1 + (i / 4 * 13) % 2000 END, 1 + i % 100, (i * 104729::bigint % 20000) / 100.0, (i * 15485863::bigint % 500000) / 100.0, (i * 32452843::bigint % 900000) / 100.0 - 3000
FROM generate_series(1, 40000) i;
INSERT INTO returns SELECT ticket, item_id, (day_id + 20) % 1096, person_id, 1 + quantity / 3, round(paid / 2, 2) FROM sales WHERE (ticket * 7 + item_id) % 11 = 0;
INSERT INTO orders SELECT i / 3, 1 + (i * 6151::bigint % 600)::int, i * 29 % 1096, (i * 29 + i % 90) % 1096, CASE WHEN i % 71 > 0 THEN 1 + i % 5 END, 1 + (i / 3 * 17) % 2000, 1 + i % 60,
	(i * 49979687::bigint % 700000) / 100.0, (i * 67867967::bigint % 800000) / 100.0 - 2500
FROM generate_series(1, 20000) i;
INSERT INTO stock SELECT d * 7, i, w, CASE WHEN (d + i + w) % 29 > 0 THEN (d * 7907 + i * 601 + w * 31) % 1000 END FROM generate_series(0, 40) d, generate_series(1, 600, 7) i, generate_series(1, 5) w;
VACUUM ANALYZE;
