# An analytic session with psycopg2: python3 psycopg2_session.py PORT DB SESSION.SQL
import sys
import psycopg2

port, db, file = sys.argv[1:]
conn = psycopg2.connect(host="127.0.0.1", port=port, dbname=db, user="postgres")
queries = open(file).read().splitlines()
# Python has no year before 1: those rows are left out.
queries = [q for q in queries if "min(d)" not in q and "690 AND 720" not in q] + [
    "SELECT id, k, b, i8, num, d, tm, ts, tz, f4, f8, t, v, c FROM typed WHERE id BETWEEN 990 AND 1020 ORDER BY id"]


def show(cur):
    print([(c.name, c.type_code, c.internal_size, c.precision, c.scale) for c in cur.description], cur.rowcount, cur.statusmessage)
    for row in cur.fetchall():
        print(row)


# The default: a transaction around everything.
with conn.cursor() as cur:
    for q in queries:
        cur.execute(q)
        show(cur)
    for i in range(7):
        cur.execute("SELECT lo_shipmode, count(*), sum(lo_revenue) FROM lineorder WHERE lo_orderdate BETWEEN %s AND %s AND lo_discount = %s GROUP BY 1 ORDER BY 1",
                    (19930101 + i * 10000, 19931231 + i * 10000, i))
        show(cur)
conn.commit()

conn.autocommit = True
with conn.cursor() as cur:
    for q in queries:
        cur.execute(q)
        show(cur)
conn.autocommit = False

# An error aborts the transaction; a savepoint saves it.
with conn.cursor() as cur:
    for bad in ("SELECT nonsense FROM lineorder", "SELECT sum(lo_revenue / (lo_discount - lo_discount)) FROM lineorder"):
        try:
            cur.execute(bad)
        except psycopg2.Error as e:
            print(e.pgcode, e.pgerror)
        try:
            cur.execute("SELECT count(*) FROM lineorder")
        except psycopg2.Error as e:
            print(e.pgcode)
        conn.rollback()
    cur.execute("CREATE TEMP TABLE mine (a int); INSERT INTO mine VALUES (1), (2)")
    cur.execute("SAVEPOINT s")
    cur.execute("SELECT count(*) FROM lineorder JOIN mine ON a = lo_linenumber")
    show(cur)
    cur.execute("ROLLBACK TO s")
    cur.execute("SELECT count(*) FROM mine")
    show(cur)
conn.rollback()

# A server-side cursor, COPY both ways, notices.
with conn.cursor("named") as cur:
    cur.itersize = 100
    cur.execute("SELECT id, num, ts FROM typed WHERE id <= 500 ORDER BY id")
    for row in cur:
        print(row)
conn.rollback()
with conn.cursor() as cur:
    cur.copy_expert("COPY (SELECT * FROM typed WHERE id < 20 ORDER BY id) TO STDOUT", sys.stdout)
    cur.execute("CREATE TEMP TABLE copied (a int, b text)")
    import io
    cur.copy_expert("COPY copied FROM STDIN", io.StringIO("1\tone\n2\t\\N\n"))
    cur.execute("DROP TABLE IF EXISTS no_such_table")
    cur.execute("SELECT * FROM copied ORDER BY a")
    show(cur)
    print(conn.notices)
conn.rollback()
conn.set_session(isolation_level="REPEATABLE READ", readonly=True)
with conn.cursor() as cur:
    for q in queries[:3]:
        cur.execute(q)
        show(cur)
conn.close()
