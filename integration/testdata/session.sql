SELECT count(*) FROM lineorder
SELECT lo_discount, count(*), sum(lo_revenue), min(lo_extendedprice), max(lo_extendedprice), avg(lo_quantity) FROM lineorder WHERE lo_quantity BETWEEN 10 AND 30 GROUP BY lo_discount ORDER BY lo_discount
SELECT sum(lo_extendedprice * lo_discount) AS revenue FROM lineorder JOIN dates ON lo_orderdate = d_datekey WHERE d_year = 1993 AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25
SELECT d_year, c_nation, sum(lo_revenue - lo_supplycost) AS profit FROM lineorder JOIN dates ON lo_orderdate = d_datekey JOIN customer ON lo_custkey = c_custkey WHERE c_region = 'AMERICA' GROUP BY d_year, c_nation ORDER BY d_year, c_nation
SELECT lo_shipmode, count(*) AS n FROM lineorder WHERE lo_orderdate >= 19940101 GROUP BY lo_shipmode HAVING count(*) > 10 ORDER BY n DESC, lo_shipmode
SELECT k, count(*), count(num), sum(num), avg(num), min(num), max(num) FROM typed GROUP BY k ORDER BY k
SELECT k, sum(i8), avg(i8), min(d), max(d), min(ts), max(ts), min(tz), max(tz), min(tm), max(tm) FROM typed GROUP BY k ORDER BY k
SELECT b, sum(k), avg(k), min(f4), max(f4), min(f8), max(f8), min(t), max(t) FROM typed WHERE id < 700 GROUP BY b ORDER BY b
SELECT v, c, count(*) FROM typed WHERE v IN ('v1', 'v2', 'v10') GROUP BY v, c ORDER BY v, c
SELECT id, k, b, i8, num, d, tm, ts, tz, f4, f8, t, v, c FROM typed WHERE id BETWEEN 690 AND 720 ORDER BY id
