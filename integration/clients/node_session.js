// An analytic session with node-postgres: NODE_PATH=... node node_session.js PORT DB SESSION.SQL
const fs = require('fs')
const { Client, types } = require('pg')
const Cursor = require('pg-cursor')

const [port, database, file] = process.argv.slice(2)
const queries = fs.readFileSync(file, 'utf8').trim().split('\n')
const param = 'SELECT lo_shipmode, count(*), sum(lo_revenue) FROM lineorder WHERE lo_orderdate BETWEEN $1 AND $2 AND lo_discount = $3 GROUP BY 1 ORDER BY 1'

function show (r) {
  console.log(JSON.stringify([r.command, r.rowCount, r.fields]))
  for (const row of r.rows) console.log(JSON.stringify(row))
}

async function main () {
  const client = new Client({ host: '127.0.0.1', port: Number(port), database, user: 'postgres', options: '-c pgaccel.mode=force' })
  client.on('notice', (n) => console.log('notice', n.code, n.message))
  await client.connect()
  for (const q of queries) show(await client.query(q))
  for (let i = 0; i < 7; i++) show(await client.query(param, [19920101 + i * 10000, 19921231 + i * 10000, i]))
  for (let i = 0; i < 7; i++) show(await client.query({ name: 'named', text: param, values: [19920101 + i * 10000, 19921231 + i * 10000, i] }))
  for (let i = 0; i < 2; i++) show(await client.query({ text: queries[1], binary: true, values: [] , name: 'binary' }))
  // Queued without waiting.
  for (const r of await Promise.all(queries.map((q) => client.query(q)))) show(r)
  for (const bad of ['SELECT nonsense FROM lineorder', 'SELECT sum(lo_revenue / (lo_discount - lo_discount)) FROM lineorder']) {
    await client.query(bad).catch((e) => console.log(e.code, e.message, e.position))
  }
  await client.query('BEGIN')
  show(await client.query(queries[0]))
  const cursor = client.query(new Cursor('SELECT id, num, ts FROM typed WHERE id <= $1 ORDER BY id', [300]))
  for (;;) {
    const rows = await cursor.read(40)
    if (rows.length === 0) break
    for (const row of rows) console.log(JSON.stringify(row))
  }
  await cursor.close()
  show(await client.query(queries[1]))
  await client.query('COMMIT')
  await client.query('DROP TABLE IF EXISTS no_such_table')
  await client.query('CREATE TEMP TABLE mine AS SELECT 1 AS a')
  show(await client.query('SELECT count(*) FROM lineorder, mine WHERE a = lo_linenumber'))
  await client.end()
}

main().catch((e) => { console.error(e); process.exit(1) })
