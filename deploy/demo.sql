-- Two tables, of 200 and a million rows (docker-compose.demo.yml; docs/quickstart.md has the same).
CREATE TABLE store (id int PRIMARY KEY, city text NOT NULL);
INSERT INTO store SELECT i, 'city ' || i % 40 FROM generate_series(1, 200) i;
CREATE TABLE sale (id bigint PRIMARY KEY, store int NOT NULL REFERENCES store, at timestamptz NOT NULL, amount numeric(10,2) NOT NULL);
INSERT INTO sale SELECT i, 1 + i % 200, timestamptz '2026-01-01 00:00+00' + i * interval '20 seconds', i % 9973 / 100.0
  FROM generate_series(1, 1000000) i;
ANALYZE store, sale;
