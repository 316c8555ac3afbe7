# An analytic session with asyncpg, all binary: python3 asyncpg_session.py PORT DB SESSION.SQL
import asyncio
import sys
import asyncpg

port, db, file = sys.argv[1:]
queries = open(file).read().splitlines()
queries = [q for q in queries if "min(d)" not in q and "690 AND 720" not in q] + [
    "SELECT id, k, b, i8, num, d, tm, ts, tz, f4, f8, t, v, c FROM typed WHERE id BETWEEN 990 AND 1020 ORDER BY id"]
param = "SELECT lo_shipmode, count(*), sum(lo_revenue) FROM lineorder WHERE lo_orderdate BETWEEN $1 AND $2 AND lo_discount = $3 GROUP BY 1 ORDER BY 1"


def show(rows):
    for row in rows:
        print([(k, repr(v)) for k, v in row.items()])


async def main():
    pool = await asyncpg.create_pool(host="127.0.0.1", port=port, database=db, user="postgres", min_size=2, max_size=2,
                                     server_settings={"pgaccel.mode": "force"})
    async with pool.acquire() as conn:
        for q in queries:
            show(await conn.fetch(q))
        for i in range(4):
            show(await conn.fetch(param, 19930101 + i * 10000, 19931231 + i * 10000, i))
        stmt = await conn.prepare(param)
        print(stmt.get_attributes(), stmt.get_parameters())
        for i in range(4):
            show(await stmt.fetch(19930101 + i * 10000, 19931231 + i * 10000, i))
        async with conn.transaction():
            for q in queries[:4]:
                show(await conn.fetch(q))
            async for row in conn.cursor("SELECT id, num, ts FROM typed WHERE id BETWEEN 900 AND 1100 ORDER BY id", prefetch=50):
                print(row)
        async with conn.transaction(isolation="repeatable_read", readonly=True):
            for q in queries[:4]:
                show(await conn.fetch(q))
        for bad in ("SELECT nonsense FROM lineorder", "SELECT sum(lo_revenue / (lo_discount - lo_discount)) FROM lineorder"):
            try:
                await conn.fetch(bad)
            except asyncpg.PostgresError as e:
                print(e.sqlstate, e)
        print(await conn.execute("CREATE TEMP TABLE mine (a int, b text)"))
        print(await conn.copy_records_to_table("mine", records=[(1, "x"), (2, None)]))
        show(await conn.fetch("SELECT count(*) FROM lineorder, mine WHERE a = lo_linenumber"))
    # Back from the pool: reset, and the same statements again.
    async with pool.acquire() as conn:
        for q in queries:
            show(await conn.fetch(q))
    await asyncio.gather(*[pool.fetch(q) for q in queries])
    await pool.close()


asyncio.run(main())
