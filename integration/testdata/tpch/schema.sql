-- The schema of TPC-H with its keys, and rows by rules like its own, made from row numbers, so that
-- they are the same each time. About 24,000 lineitems.
CREATE TABLE region (r_regionkey int PRIMARY KEY, r_name char(25) NOT NULL, r_comment varchar(152));
CREATE TABLE nation (n_nationkey int PRIMARY KEY, n_name char(25) NOT NULL, n_regionkey int NOT NULL, n_comment varchar(152));
CREATE TABLE supplier (s_suppkey int PRIMARY KEY, s_name char(25) NOT NULL, s_address varchar(40) NOT NULL, s_nationkey int NOT NULL, s_phone char(15) NOT NULL, s_acctbal numeric(15,2) NOT NULL, s_comment varchar(101) NOT NULL);
CREATE TABLE part (p_partkey int PRIMARY KEY, p_name varchar(55) NOT NULL, p_mfgr char(25) NOT NULL, p_brand char(10) NOT NULL, p_type varchar(25) NOT NULL, p_size int NOT NULL, p_container char(10) NOT NULL, p_retailprice numeric(15,2) NOT NULL, p_comment varchar(23) NOT NULL);
CREATE TABLE partsupp (ps_partkey int NOT NULL, ps_suppkey int NOT NULL, ps_availqty int NOT NULL, ps_supplycost numeric(15,2) NOT NULL, ps_comment varchar(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE customer (c_custkey int PRIMARY KEY, c_name varchar(25) NOT NULL, c_address varchar(40) NOT NULL, c_nationkey int NOT NULL, c_phone char(15) NOT NULL, c_acctbal numeric(15,2) NOT NULL, c_mktsegment char(10) NOT NULL, c_comment varchar(117) NOT NULL);
CREATE TABLE orders (o_orderkey int PRIMARY KEY, o_custkey int NOT NULL, o_orderstatus char(1) NOT NULL, o_totalprice numeric(15,2) NOT NULL, o_orderdate date NOT NULL, o_orderpriority char(15) NOT NULL, o_clerk char(15) NOT NULL, o_shippriority int NOT NULL, o_comment varchar(79) NOT NULL);
CREATE TABLE lineitem (l_orderkey int NOT NULL, l_partkey int NOT NULL, l_suppkey int NOT NULL, l_linenumber int NOT NULL, l_quantity numeric(15,2) NOT NULL, l_extendedprice numeric(15,2) NOT NULL, l_discount numeric(15,2) NOT NULL, l_tax numeric(15,2) NOT NULL, l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL, l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber));

-- r(i, salt, n): a number from 0 to n-1 that only i and salt decide.
CREATE FUNCTION r(i bigint, salt int, n int) RETURNS int IMMUTABLE LANGUAGE sql AS
$$ SELECT ((hashint8extended(i, salt) & 2147483647) % n)::int $$;
CREATE FUNCTION word(i int, words text[]) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT words[1 + i % cardinality(words)] $$;

INSERT INTO region SELECT i, word(i, '{AFRICA,AMERICA,ASIA,EUROPE,"MIDDLE EAST"}'), 'region' FROM generate_series(0, 4) i;
INSERT INTO nation SELECT i, word(i, '{ALGERIA,ARGENTINA,BRAZIL,CANADA,EGYPT,ETHIOPIA,FRANCE,GERMANY,INDIA,INDONESIA,IRAN,IRAQ,JAPAN,JORDAN,KENYA,MOROCCO,MOZAMBIQUE,PERU,CHINA,ROMANIA,"SAUDI ARABIA",VIETNAM,RUSSIA,"UNITED KINGDOM","UNITED STATES"}'),
  (ARRAY[0,1,1,1,4,0,3,3,2,2,4,4,2,4,0,0,0,1,2,3,4,2,3,3,1])[i+1], 'nation' FROM generate_series(0, 24) i;
INSERT INTO supplier SELECT i, 'Supplier#' || lpad(i::text, 9, '0'), 'address ' || i, r(i, 1, 25), (10 + r(i, 1, 25)) || '-' || (100 + r(i, 2, 900)) || '-555', r(i, 3, 1100000) / 100.0 - 999.99,
  CASE WHEN r(i, 4, 20) = 0 THEN 'quick Customer slow Complaints' ELSE 'carefully final' END FROM generate_series(1, 100) i;
INSERT INTO part SELECT i, word(r(i, 1, 8), '{almond,antique,forest,green,lemon,navy,peach,snow}') || ' ' || word(r(i, 2, 7), '{green,blush,chiffon,forest,ivory,plum,thistle}'), 'Manufacturer#' || (1 + r(i, 3, 5)), 'Brand#' || (1 + r(i, 3, 5)) || (1 + r(i, 4, 5)),
  word(r(i, 5, 6), '{STANDARD,SMALL,MEDIUM,LARGE,ECONOMY,PROMO}') || ' ' || word(r(i, 6, 5), '{ANODIZED,BURNISHED,PLATED,POLISHED,BRUSHED}') || ' ' || word(r(i, 7, 5), '{TIN,NICKEL,BRASS,STEEL,COPPER}'),
  1 + r(i, 8, 50), word(r(i, 9, 5), '{SM,LG,MED,JUMBO,WRAP}') || ' ' || word(r(i, 10, 8), '{CASE,BOX,BAG,JAR,PKG,PACK,CAN,DRUM}'), 900 + i % 1000 / 10.0, 'part' FROM generate_series(1, 800) i;
INSERT INTO partsupp SELECT p, 1 + (p + s * 26) % 100, 1 + r(p * 4 + s, 1, 9999), 1 + r(p * 4 + s, 2, 100000) / 100.0, 'partsupp' FROM generate_series(1, 800) p, generate_series(0, 3) s;
INSERT INTO customer SELECT i, 'Customer#' || lpad(i::text, 9, '0'), 'address ' || i, r(i, 1, 25), (10 + r(i, 1, 25)) || '-' || (100 + r(i, 2, 900)) || '-555', r(i, 3, 1100000) / 100.0 - 999.99,
  word(r(i, 4, 5), '{AUTOMOBILE,BUILDING,FURNITURE,MACHINERY,HOUSEHOLD}'), 'customer' FROM generate_series(1, 600) i;
INSERT INTO orders SELECT i, 1 + (r(i, 1, 400) * 3) % 600, word(r(i, 2, 3), '{F,O,P}'), 1000 + r(i, 3, 40000000) / 100.0, date '1992-01-01' + r(i, 4, 2406), word(r(i, 5, 5), '{1-URGENT,2-HIGH,3-MEDIUM,"4-NOT SPECIFIED",5-LOW}'),
  'Clerk#' || r(i, 6, 1000), 0, CASE WHEN r(i, 7, 30) = 0 THEN 'some special packages requests' ELSE 'quickly ironic' END FROM generate_series(1, 6000) i;
INSERT INTO lineitem SELECT o, p, 1 + (p + r(o * 8 + l, 2, 4) * 26) % 100, l, q, q * (900 + p % 1000 / 10.0), r(o * 8 + l, 4, 11) / 100.0, r(o * 8 + l, 5, 9) / 100.0,
  CASE WHEN d + r(o * 8 + l, 8, 30) <= date '1995-06-17' THEN word(r(o * 8 + l, 9, 2), '{R,A}') ELSE 'N' END, CASE WHEN d > date '1995-06-17' THEN 'O' ELSE 'F' END,
  d, d + r(o * 8 + l, 10, 60) - 30, d + 1 + r(o * 8 + l, 8, 30), word(r(o * 8 + l, 11, 4), '{"DELIVER IN PERSON","COLLECT COD",NONE,"TAKE BACK RETURN"}'), word(r(o * 8 + l, 12, 7), '{"REG AIR",AIR,RAIL,SHIP,TRUCK,MAIL,FOB}'), 'lineitem'
FROM (SELECT o, l, 1 + r(o * 8 + l, 1, 800) AS p, 1 + r(o * 8 + l, 3, 50) AS q, date '1992-01-01' + r(o, 4, 2406) + 1 + r(o * 8 + l, 7, 121) AS d FROM generate_series(1, 6000) o, generate_series(1, 7) l WHERE l <= 1 + r(o, 8, 7)) x;
-- Some orders of many lines, for Q18.
INSERT INTO lineitem SELECT o, 1 + o % 800, 1 + o % 100, l, 50, 50000, 0.05, 0.02, 'N', 'O', date '1996-01-01' + l, date '1996-02-01', date '1996-02-02' + l, 'NONE', 'SHIP', 'many' FROM generate_series(100, 2000, 100) o, generate_series(8, 12) l;
DROP FUNCTION r(bigint, int, int); DROP FUNCTION word(int, text[]);
ANALYZE;
