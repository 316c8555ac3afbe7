\d
\d lineorder
\d+ typed
\dt+ lineorder
\di
\du
\dn+
\dp secret
\df r
\l postgres
\dconfig DateStyle
\set d 3
SELECT count(*) FROM lineorder WHERE lo_discount = :d;
SELECT count(*) AS n FROM lineorder \gset
\echo :n
SELECT lo_discount, count(*) FROM lineorder GROUP BY 1 ORDER BY 1 \gdesc
SELECT lo_discount, count(*) FROM lineorder GROUP BY 1 ORDER BY 1 \g (format=csv)
SELECT k, b, count(*) FROM typed GROUP BY k, b ORDER BY k, b \crosstabview
SELECT k, sum(num) FROM typed GROUP BY k ORDER BY k \gx
SELECT count(*) FROM lineorder; SELECT count(*) FROM dates\; SELECT count(*) FROM part;
SELECT 'SELECT count(*) FROM ' || quote_ident(t) FROM unnest(ARRAY['dates', 'part']) t \gexec
BEGIN;
SELECT count(*) FROM lineorder;
SAVEPOINT a;
SELECT nonsense FROM lineorder;
SELECT count(*) FROM lineorder;
ROLLBACK TO a;
SELECT count(*) FROM lineorder;
COMMIT;
SELECT sum(lo_revenue / (lo_discount - lo_discount)) FROM lineorder;
\errverbose
PREPARE p (int) AS SELECT count(*), sum(lo_revenue) FROM lineorder WHERE lo_discount = $1;
EXECUTE p(3);
EXECUTE p(4);
DEALLOCATE p;
DECLARE c CURSOR WITH HOLD FOR SELECT id, num FROM typed WHERE id < 30 ORDER BY id;
FETCH 3 FROM c;
FETCH LAST FROM c;
CLOSE c;
\set FETCH_COUNT 7
SELECT id, num, ts FROM typed WHERE id <= 40 ORDER BY id;
\unset FETCH_COUNT
CREATE TEMP TABLE local (LIKE typed);
\copy typed (id, k, num) to pstdout with csv
\copy (SELECT id, t FROM typed WHERE id < 10 ORDER BY id) to pstdout
\copy local (id, num) from pstdin
1	1.50
2	\N
\.
SELECT id, num FROM local ORDER BY id;
COPY (SELECT lo_discount, count(*) FROM lineorder GROUP BY 1 ORDER BY 1) TO STDOUT;
EXPLAIN (COSTS OFF) SELECT 1;
LISTEN ch;
NOTIFY ch, 'x';
DO $$BEGIN RAISE NOTICE 'note'; RAISE WARNING 'warn'; END$$;
CREATE TEMP SEQUENCE s;
SELECT 1 / (4 - nextval('s')), (SELECT count(*) FROM dates) \watch 0.01
SHOW pgaccel.mode;
