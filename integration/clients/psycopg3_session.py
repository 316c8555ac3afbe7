# An analytic session with psycopg 3: python3 psycopg3_session.py PORT DB SESSION.SQL
import sys
import psycopg

port, db, file = sys.argv[1:]
queries = open(file).read().splitlines()
# Python has no year before 1 and no infinite date: those rows are left out.
queries = [q for q in queries if "min(d)" not in q and "690 AND 720" not in q] + [
    "SELECT id, k, b, i8, num, d, tm, ts, tz, f4, f8, t, v, c FROM typed WHERE id BETWEEN 990 AND 1020 ORDER BY id"]


def show(cur):
    print([(c.name, c.type_code, c.internal_size, c.precision, c.scale) for c in cur.description], cur.rowcount, cur.statusmessage)
    for row in cur:
        print(row)


for autocommit in (False, True):
    with psycopg.connect(host="127.0.0.1", port=port, dbname=db, user="postgres", autocommit=autocommit) as conn:
        for binary in (False, True):
            for q in queries:
                show(conn.execute(q, binary=binary))
            # Prepared from the fifth execution on.
            for i in range(8):
                show(conn.execute("SELECT lo_shipmode, count(*), sum(lo_revenue) FROM lineorder WHERE lo_orderdate BETWEEN %s AND %s AND lo_discount = %s GROUP BY 1 ORDER BY 1",
                                  (19930101 + i * 10000, 19931231 + i * 10000, i), binary=binary))
            show(conn.execute("SELECT count(*), sum(num) FROM typed WHERE num > %s AND t <> %s", (1000.25, "text 1"), binary=binary))
        for bad in ("SELECT nonsense FROM lineorder", "SELECT sum(lo_revenue / (lo_discount - lo_discount)) FROM lineorder"):
            try:
                conn.execute(bad)
            except psycopg.Error as e:
                print(e.sqlstate, e)
            if not autocommit:
                conn.rollback()
        with conn.transaction():
            show(conn.execute(queries[0]))
            with conn.transaction(force_rollback=True):
                conn.execute("CREATE TEMP TABLE mine AS SELECT 1 AS a")
                show(conn.execute("SELECT count(*) FROM lineorder, mine WHERE a = lo_linenumber"))
            show(conn.execute(queries[1]))
        with conn.transaction(), conn.cursor("named") as cur:
            cur.execute("SELECT id, num, ts FROM typed WHERE id BETWEEN 900 AND 1100 ORDER BY id")
            cur.itersize = 50
            for row in cur:
                print(row)
        with conn.transaction(), conn.cursor() as cur:
            with cur.copy("COPY (SELECT * FROM typed WHERE id < 20 ORDER BY id) TO STDOUT") as copy:
                for data in copy:
                    print(bytes(data))
        if autocommit:
            with conn.pipeline():
                curs = [conn.execute(q) for q in queries[:4]]
            for cur in curs:
                show(cur)
