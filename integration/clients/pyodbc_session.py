# An analytic session with psqlODBC: python3 pyodbc_session.py PORT DB SESSION.SQL USE_DECLARE_FETCH
import sys
import pyodbc

port, db, file, declare = sys.argv[1:]
queries = open(file).read().splitlines()
queries = [q for q in queries if "min(d)" not in q and "690 AND 720" not in q] + [
    "SELECT id, k, b, i8, num, d, tm, ts, tz, f4, f8, t, v, c FROM typed WHERE id BETWEEN 990 AND 1020 ORDER BY id"]


def show(cur):
    print([c[:2] + c[3:] for c in cur.description])
    for row in cur.fetchall():
        print(tuple(row))


for autocommit in (True, False):
    conn = pyodbc.connect("DRIVER={PostgreSQL Unicode};SERVER=127.0.0.1;PORT=%s;DATABASE=%s;UID=postgres;UseDeclareFetch=%s;Fetch=100;SSLmode=disable"
                          % (port, db, declare), autocommit=autocommit)
    cur = conn.cursor()
    for q in queries:
        cur.execute(q)
        show(cur)
    for i in range(7):
        cur.execute("SELECT lo_shipmode, count(*), sum(lo_revenue) FROM lineorder WHERE lo_orderdate BETWEEN ? AND ? AND lo_discount = ? GROUP BY 1 ORDER BY 1",
                    19930101 + i * 10000, 19931231 + i * 10000, i)
        show(cur)
    for bad in ("SELECT nonsense FROM lineorder", "SELECT sum(lo_revenue / (lo_discount - lo_discount)) FROM lineorder"):
        try:
            cur.execute(bad)
            show(cur)
        except pyodbc.Error as e:
            print(e.args)
        if not autocommit:
            conn.rollback()
    for t in cur.tables(schema="public"):
        print(tuple(t))
    for c in cur.columns(table="typed"):
        print(tuple(c))
    cur.execute("CREATE TEMP TABLE mine (a int)")
    cur.executemany("INSERT INTO mine VALUES (?)", [(1,), (2,)])
    cur.execute("SELECT count(*) FROM lineorder, mine WHERE a = lo_linenumber")
    show(cur)
    if not autocommit:
        conn.commit()
    conn.close()
