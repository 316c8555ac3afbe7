// The console in a browser: NODE_PATH=... node console.js URL CHROMIUM [FOLDER]. Looks at each page, wide and narrow, light and dark,
// and prints what it found of it, a line of JSON each; with a folder it leaves pictures there.
const { chromium } = require('playwright-core')
const axe = require('fs').readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')
const path = require('path')

const [base, executablePath, folder] = process.argv.slice(2)
const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']
const role = 'w_' + 'w'.repeat(50) // of nearly the longest names
const sizes = [{ width: 1440, height: 900 }, { width: 390, height: 844 }]

// found waits for a text in the page's content.
async function found (page, text) {
  await page.locator('main .page:not([hidden])').getByText(text).first().waitFor()
}

// The pages with what proves that they have their data, and what is done before.
const pages = [
  { name: 'overview', at: '#/overview', has: 'Statements that gain' },
  { name: 'queries', at: '#/queries', has: 'FROM sale' },
  { name: 'tables', at: '#/tables', has: 'public.sale' },
  { name: 'columns', at: '#/tables/public.sale', has: 'amount' },
  { name: 'replication', at: '#/replication', has: 'PostgreSQL 1' },
  { name: 'sessions', at: '#/sessions', has: 'pgaccel console' },
  { name: 'warnings', at: '#/warnings', has: 'is not copied' },
  { name: 'compare', at: '#/compare', has: 'One statement' }
]

async function visit (browser, viewport) {
  const context = await browser.newContext({ viewport, colorScheme: 'light' })
  const page = await context.newPage()
  page.setDefaultTimeout(60000)
  const troubles = []
  page.on('console', (m) => { if (['error', 'warning'].includes(m.type())) troubles.push(m.text()) })
  page.on('pageerror', (e) => troubles.push(String(e)))
  page.on('request', (r) => { if (!r.url().startsWith(base)) troubles.push('asks elsewhere: ' + r.url()) })

  // look takes stock of what is shown, in both colour schemes.
  async function look (name) {
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.waitForTimeout(50) // curves are drawn at the next frame
      if (folder) await page.screenshot({ path: path.join(folder, `${name}-${viewport.width}-${colorScheme}.png`), fullPage: true })
      const state = await page.evaluate(() => ({
        overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        cut: [...document.querySelectorAll('main *')].filter((e) => !e.closest('.scroll, .u-wrap, [hidden]') && e.getClientRects().length > 0 && (e.getBoundingClientRect().right > innerWidth + 1 || (e.matches('.table') && e.scrollWidth > e.clientWidth + 1))).map((e) => `${e.tagName} ${e.className}`).slice(0, 5),
        errors: [...document.querySelectorAll('main .error:not([hidden])')].map((e) => e.textContent)
      }))
      console.log(JSON.stringify({ page: name, width: viewport.width, scheme: colorScheme, ...state, troubles: troubles.splice(0), violations: await barriers(colorScheme) }))
    }
    await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  }
  // barriers are what axe finds to be serious. It runs beside the page's scripts: the page's policy lets it have no others.
  // What differs in the dark are colours, which are those of the wide page.
  const client = await context.newCDPSession(page)
  let world
  async function barriers (colorScheme) {
    if (colorScheme === 'dark' && viewport.width < 900) return []
    const only = colorScheme === 'dark' ? ', runOnly: ["color-contrast"]' : ''
    const r = await client.send('Runtime.evaluate', { expression: `axe.run(document, { resultTypes: ["violations"]${only} })`, contextId: await isolated(), awaitPromise: true, returnByValue: true })
    return r.result.value.violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => `${v.id}: ${v.nodes.map((n) => n.html + ' ' + n.failureSummary).slice(0, 3).join(' | ')}`)
  }
  async function isolated () {
    if (!world) {
      const { frameTree } = await client.send('Page.getFrameTree')
      world = (await client.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id, worldName: 'axe' })).executionContextId
      await client.send('Runtime.evaluate', { expression: axe, contextId: world })
    }
    return world
  }

  // Without a login: the overview, and a form in place of all else.
  await page.goto(base + '/console/')
  await page.locator('.plot canvas').first().waitFor()
  await found(page, 'Why statements were forwarded')
  if (await page.getByText('Statements that gain').count() > 0) throw new Error('statements are shown without a login')
  await page.evaluate(() => document.querySelector('main').append(document.createElement('button')))
  if (!(await barriers('light')).join().includes('button-name')) throw new Error('axe does not find a button without a name')
  await page.evaluate(() => document.querySelector('main > button:last-child').remove())
  await look('strangers')
  await page.goto(base + '/console/#/queries')
  await page.getByLabel('Role').waitFor()
  await page.getByLabel('Role').fill('nobody')
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByRole('alert').getByText('does not exist').waitFor()
  troubles.splice(0) // the browser reports the 401
  await look('login')
  await page.getByLabel('Role').fill(role)
  await page.keyboard.press('Enter')
  await found(page, 'FROM sale')

  for (const p of pages) {
    await page.goto(base + '/console/' + p.at)
    await found(page, p.has)
    await look(p.name)
  }

  // A statement by its link, with the keyboard: what it lacks, and what helps.
  await page.goto(base + '/console/#/queries')
  await found(page, 'FROM sale')
  await page.getByLabel('Find').fill('json_agg')
  const link = page.getByRole('link', { name: /json_agg/ }).first()
  await link.focus()
  await page.keyboard.press('Enter')
  await found(page, 'Both sides')
  await page.locator('mark', { hasText: 'json_agg' }).waitFor()
  await look('statement')

  // Filters leave what they should, an order is what it says.
  await page.goto(base + '/console/#/queries')
  await page.getByLabel('Show').selectOption('forwarded')
  // Not sum(amount): other visits have PostgreSQL compute it, to compare.
  if (await page.getByText('avg(amount)').count() > 0) throw new Error('the filter shows what pgaccel has answered')
  await page.getByLabel('Show').selectOption('all')
  if (viewport.width > 900) {
    await page.getByRole('button', { name: 'Calls' }).click()
    const calls = (await page.locator('tbody td:nth-child(3)').allTextContents()).map(Number)
    if (calls.length < 4 || calls.some((n, i) => i > 0 && n > calls[i - 1])) throw new Error(`ordered by calls: ${calls}`)
  }
  await page.getByLabel('Find').fill('no such statement')
  await found(page, 'No statement.')
  await look('empty')

  // One statement by both sides.
  await page.goto(base + '/console/#/compare')
  await page.getByLabel('One statement').fill('SELECT region, sum(amount), count(*) FROM sale GROUP BY region ORDER BY region')
  await page.keyboard.press('Control+Enter')
  await found(page, 'the same answer')
  await look('compared')
  await page.getByLabel('One statement').fill('DROP TABLE sale')
  await page.getByRole('button', { name: 'Run' }).click()
  await found(page, 'returns rows')
  troubles.splice(0)

  // What is to be warned of, by what is made up.
  const warned = await page.evaluate(async () => {
    const { warningsOf } = await import('/console/warnings.js')
    const well = () => ({ status: { stream_connected: true, lag_seconds: 0, lag_bytes: 0, last_error: null, column_bytes: 1, column_limit_bytes: 100, query_bytes: 0, query_limit_bytes: 100, checkpoint_failures: 0 }, tables: [{ name: 'a', state: 'ready', detail: '' }, { name: 'view', state: 'refused', detail: 'a view' }], queries: [{ query: 'SELECT', mismatches: 0, checks: 4 }], now: { tables: [{ name: 'a' }], mismatches: 0, refused_connections: 0 } })
    const faults = [(w) => {}, (w) => { w.status.stream_connected = false }, (w) => { w.status.lag_seconds = 60 }, (w) => { w.tables[0].state = 'copying' }, (w) => { w.tables[0].state = 'refused' },
      (w) => { w.queries[0].mismatches = 1 }, (w) => { w.now.mismatches = 1 }, (w) => { w.status.column_bytes = 95 }, (w) => { w.status.query_bytes = 95 }, (w) => { w.status.checkpoint_failures = 2 }, (w) => { w.now.refused_connections = 1 }]
    return faults.map((fault) => { const w = well(); fault(w); return warningsOf(w).filter((one) => one.title && one.text && one.remedy).length })
  })
  if (String(warned) !== '0,1,1,1,1,1,1,1,1,1,1') throw new Error(`warnings: ${warned}`)

  // pgaccel is away: an error, and no blank page.
  await page.route('**/api/**', (r) => r.abort())
  await page.goto(base + '/console/#/tables')
  await page.getByText('pgaccel does not answer').waitFor()
  await page.unroute('**/api/**')
  await page.getByRole('button', { name: 'Try again' }).click()
  await found(page, 'public.sale')
  troubles.splice(0)
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByRole('link', { name: 'Log in' }).waitFor()
  await context.close()
}

async function main () {
  const browser = await chromium.launch({ executablePath, args, headless: true })
  await Promise.all(sizes.map((viewport) => visit(browser, viewport)))
  await browser.close()
}

main().catch((e) => { console.error(e); process.exit(1) })
