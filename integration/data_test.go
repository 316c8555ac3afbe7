package integration

// starSchema creates the five tables of the Star Schema Benchmark, small and
// skewed so that each of the 13 queries finds rows, without help of pgaccel's own
// generator. Everything follows from the row number: no two runs differ.
const starSchema = `
CREATE TABLE customer (c_custkey integer NOT NULL, c_name varchar(25) NOT NULL, c_address varchar(25) NOT NULL, c_city varchar(10) NOT NULL,
  c_nation varchar(15) NOT NULL, c_region varchar(12) NOT NULL, c_phone varchar(15) NOT NULL, c_mktsegment varchar(10) NOT NULL);
CREATE TABLE supplier (s_suppkey integer NOT NULL, s_name varchar(25) NOT NULL, s_address varchar(25) NOT NULL, s_city varchar(10) NOT NULL,
  s_nation varchar(15) NOT NULL, s_region varchar(12) NOT NULL, s_phone varchar(15) NOT NULL);
CREATE TABLE part (p_partkey integer NOT NULL, p_name varchar(22) NOT NULL, p_mfgr varchar(6) NOT NULL, p_category varchar(7) NOT NULL,
  p_brand1 varchar(9) NOT NULL, p_color varchar(11) NOT NULL, p_type varchar(25) NOT NULL, p_size integer NOT NULL, p_container varchar(10) NOT NULL);
CREATE TABLE dates (d_datekey integer NOT NULL, d_date varchar(19) NOT NULL, d_dayofweek varchar(10) NOT NULL, d_month varchar(10) NOT NULL,
  d_year integer NOT NULL, d_yearmonthnum integer NOT NULL, d_yearmonth varchar(8) NOT NULL, d_daynuminweek integer NOT NULL,
  d_daynuminmonth integer NOT NULL, d_daynuminyear integer NOT NULL, d_monthnuminyear integer NOT NULL, d_weeknuminyear integer NOT NULL,
  d_sellingseason varchar(13) NOT NULL, d_lastdayinweekfl varchar(1) NOT NULL, d_lastdayinmonthfl varchar(1) NOT NULL,
  d_holidayfl varchar(1) NOT NULL, d_weekdayfl varchar(1) NOT NULL);
CREATE TABLE lineorder (lo_orderkey integer NOT NULL, lo_linenumber integer NOT NULL, lo_custkey integer NOT NULL, lo_partkey integer NOT NULL,
  lo_suppkey integer NOT NULL, lo_orderdate integer NOT NULL, lo_orderpriority varchar(15) NOT NULL, lo_shippriority varchar(1) NOT NULL,
  lo_quantity integer NOT NULL, lo_extendedprice integer NOT NULL, lo_ordtotalprice integer NOT NULL, lo_discount integer NOT NULL,
  lo_revenue integer NOT NULL, lo_supplycost integer NOT NULL, lo_tax integer NOT NULL, lo_commitdate integer NOT NULL, lo_shipmode varchar(10) NOT NULL);

-- r(i, salt): an evenly spread integer of 28 bits.
CREATE FUNCTION r(i int, salt int) RETURNS int LANGUAGE sql IMMUTABLE AS
  $$SELECT ('x0' || substr(md5(i || '/' || salt), 1, 7))::bit(32)::int$$;
CREATE TABLE nations AS SELECT * FROM unnest(
  ARRAY['UNITED STATES','UNITED KINGDOM','CHINA','BRAZIL','CANADA','FRANCE','GERMANY','INDIA','JAPAN','EGYPT','KENYA','IRAN'],
  ARRAY['AMERICA','EUROPE','ASIA','AMERICA','AMERICA','EUROPE','EUROPE','ASIA','ASIA','MIDDLE EAST','AFRICA','MIDDLE EAST']) WITH ORDINALITY n(nation, region, n);

INSERT INTO customer SELECT i, 'Customer#' || lpad(i::text, 9, '0'), 'addr ' || r(i, 1), rpad(substr(nation, 1, 9), 9) || (ARRAY[1,5,1,5,0,2,9])[1 + r(i, 2) % 7],
  nation, region, '10-' || r(i, 3) % 1000000, (ARRAY['AUTOMOBILE','BUILDING','FURNITURE','HOUSEHOLD','MACHINERY'])[1 + r(i, 4) % 5]
  FROM generate_series(1, 1500) i JOIN nations ON n = 1 + least(r(i, 5) % 24, r(i, 6) % 12) % 12;
INSERT INTO supplier SELECT i, 'Supplier#' || lpad(i::text, 9, '0'), 'addr ' || r(i, 11), rpad(substr(nation, 1, 9), 9) || (ARRAY[1,5,1,5,0,2,9])[1 + r(i, 12) % 7],
  nation, region, '10-' || r(i, 13) % 1000000
  FROM generate_series(1, 300) i JOIN nations ON n = 1 + least(r(i, 15) % 24, r(i, 16) % 12) % 12;
INSERT INTO part SELECT i, 'part ' || i, 'MFGR#' || m, 'MFGR#' || m || c, 'MFGR#' || m || c || b,
  (ARRAY['red','green','blue','azure','ivory'])[1 + r(i, 21) % 5], 'STANDARD ' || r(i, 22) % 150, 1 + r(i, 23) % 50, 'JUMBO ' || r(i, 24) % 40
  FROM generate_series(1, 1000) i, LATERAL (SELECT 1 + least(r(i, 25) % 5, r(i, 26) % 5) m, 1 + r(i, 27) % 5 c, CASE WHEN r(i, 29) % 5 = 0 THEN 39 ELSE 1 + r(i, 28) % 40 END b) x;
INSERT INTO dates SELECT to_char(d, 'YYYYMMDD')::int, trim(to_char(d, 'FMMonth DD, YYYY')), trim(to_char(d, 'Day')), trim(to_char(d, 'Month')),
  to_char(d, 'YYYY')::int, to_char(d, 'YYYYMM')::int, to_char(d, 'MonYYYY'), to_char(d, 'D')::int, to_char(d, 'DD')::int, to_char(d, 'DDD')::int,
  to_char(d, 'MM')::int, to_char(d, 'WW')::int, 'Winter', '0', '0', '0', '1' FROM generate_series(date '1992-01-01', date '1998-12-31', '1 day') d;
INSERT INTO lineorder SELECT 1 + i / 4, 1 + i % 4, 1 + r(i, 31) % 1500, 1 + r(i, 32) % 1000, 1 + r(i, 33) % 300,
  to_char(date '1992-01-01' + r(i / 4, 34) % 2406, 'YYYYMMDD')::int,
  (ARRAY['1-URGENT','2-HIGH','3-MEDIUM','4-NOT SPECI','5-LOW'])[1 + r(i / 4, 35) % 5], '0', 1 + r(i, 36) % 50, price, price * 3, disc,
  price * (100 - disc) / 100, price * 6 / 10, r(i, 38) % 9, to_char(date '1992-01-01' + r(i / 4, 34) % 2406 + 30, 'YYYYMMDD')::int,
  (ARRAY['REG AIR','AIR','RAIL','SHIP','TRUCK','MAIL','FOB'])[1 + r(i, 39) % 7]
  FROM generate_series(0, 59999) i, LATERAL (SELECT 90000 + r(i, 40) % 5000000 price, r(i, 37) % 11 disc) x;
ALTER TABLE customer ADD PRIMARY KEY (c_custkey);
ALTER TABLE supplier ADD PRIMARY KEY (s_suppkey);
ALTER TABLE part ADD PRIMARY KEY (p_partkey);
ALTER TABLE dates ADD PRIMARY KEY (d_datekey);
ALTER TABLE lineorder ADD PRIMARY KEY (lo_orderkey, lo_linenumber);

-- typed has every kind of column that is accelerated, with nulls and edges.
CREATE TABLE typed (id int PRIMARY KEY, k smallint, b boolean, i8 bigint, num numeric(12,2), d date, tm time, ts timestamp, tz timestamptz,
  f4 real, f8 double precision, t text, v varchar(20), c char(6));
INSERT INTO typed SELECT i, (i % 7)::smallint, i % 3 = 0, (i::bigint - 1000) * 4611686018427387, ((i - 1000) * 12345.67)::numeric(12,2),
  date '2000-01-01' + (i - 1000) * 97, time '00:00' + i * interval '43.219 seconds', timestamp '2000-01-01' + (i - 1000) * interval '13 days 1.5 seconds',
  timestamptz '2000-01-01 00:00+00' - (i - 1000) * interval '17 days 0.25 seconds', (i - 1000) / 7.0, (i - 1000) * 1e15 / 3.0, 'text ' || i % 50, 'v' || i % 11, 'c' || i % 13
  FROM generate_series(1, 2000) i;
UPDATE typed SET k = NULL, b = NULL, i8 = NULL, num = NULL, d = NULL, tm = NULL, ts = NULL, tz = NULL, f4 = NULL, f8 = NULL, t = NULL, v = NULL, c = NULL WHERE id % 19 = 0;
UPDATE typed SET d = 'infinity', ts = '-infinity', tz = 'infinity', f4 = 'NaN', f8 = '-Infinity', i8 = 9223372036854775807, t = 'äöü 日本 ''"\', c = '' WHERE id = 700;
UPDATE typed SET d = '0044-03-15 BC', ts = '0044-03-15 12:00:00.000001 BC', tz = '0044-03-15 12:00:00+00 BC', f4 = '-0', f8 = 5e-324, i8 = -9223372036854775808, t = '' WHERE id = 701;

-- changing is what writers write to.
CREATE TABLE changing (id int PRIMARY KEY, g int NOT NULL, v bigint NOT NULL);
INSERT INTO changing SELECT i, i % 10, i FROM generate_series(1, 5000) i;
VACUUM ANALYZE;
`

// rightsSchema creates tables that roles see in part, and the roles.
const rightsSchema = `
CREATE ROLE nobody_special LOGIN;
CREATE ROLE some_columns LOGIN;
CREATE ROLE some_rows LOGIN;
CREATE ROLE reader LOGIN;
CREATE TABLE secret (id int PRIMARY KEY, g int NOT NULL, v bigint NOT NULL, owner name NOT NULL);
INSERT INTO secret SELECT i, i % 5, i * 3, CASE WHEN i % 4 = 0 THEN 'some_rows' ELSE 'other' END FROM generate_series(1, 4000) i;
CREATE TABLE ruled (id int PRIMARY KEY, g int NOT NULL, v bigint NOT NULL, owner name NOT NULL);
INSERT INTO ruled SELECT * FROM secret;
GRANT SELECT ON secret TO reader;
GRANT SELECT (id, g) ON secret TO some_columns;
GRANT SELECT ON ruled TO reader, some_rows;
ALTER TABLE ruled ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON ruled FOR SELECT TO some_rows USING (owner = current_user);
CREATE VIEW secret_view AS SELECT g, sum(v) AS s FROM secret GROUP BY g;
CREATE VIEW invoker_view WITH (security_invoker) AS SELECT g, sum(v) AS s FROM secret GROUP BY g;
GRANT SELECT ON secret_view, invoker_view TO nobody_special;
GRANT USAGE ON SCHEMA public TO PUBLIC;
VACUUM ANALYZE secret, ruled;
`
