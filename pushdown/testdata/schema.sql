-- The tables that the tests plan over, besides the Star Schema Benchmark's.
CREATE TABLE orders (
  id bigint PRIMARY KEY,
  customer_id integer NOT NULL,
  shop_id smallint,
  status varchar(10),
  kind text NOT NULL,
  flag char(4),
  amount numeric(10,2) NOT NULL,
  rate numeric(6,4),
  qty integer,
  small smallint,
  big bigint,
  weight real,
  score double precision,
  paid boolean,
  day date NOT NULL,
  at timestamp,
  seen timestamptz,
  clock time,
  doc regclass,
  data jsonb
);
CREATE INDEX orders_day ON orders (day, shop_id);
CREATE TABLE customers (id integer PRIMARY KEY, name text NOT NULL, region_id integer NOT NULL, vip boolean, since date, credit numeric(12,4));
CREATE TABLE regions (id integer PRIMARY KEY, name varchar(20) NOT NULL, code char(4) NOT NULL UNIQUE);
CREATE TABLE shops (id smallint, lang text NOT NULL, title text, opened timestamp, PRIMARY KEY (id, lang));
CREATE TABLE logs (customer_id integer, note text);
CREATE TABLE floats (id integer PRIMARY KEY, g integer NOT NULL, x double precision, y real);
CREATE TABLE hierarchy (parent text, child integer, weight numeric(5,4), since date);
CREATE TABLE "Odd Name" ("Id" integer PRIMARY KEY, "select" text, "Value" numeric(8,3));
