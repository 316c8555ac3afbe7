// The picture of the console in docs: NODE_PATH=... node console_picture.js URL CHROMIUM FILE ROLE PASSWORD.
const { chromium } = require('playwright-core')

const [base, executablePath, path, role, password] = process.argv.slice(2)

async function main () {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'], headless: true })
  const page = await browser.newPage({ viewport: { width: 1280, height: 590 }, colorScheme: 'light' })
  await page.goto(base + '/console/#/queries')
  await page.getByLabel('Role').fill(role)
  await page.getByLabel('Password').fill(password)
  await page.keyboard.press('Enter')
  await page.locator('main .page:not([hidden])').getByText('FROM sale').first().waitFor()
  await page.screenshot({ path })
  await browser.close()
}

main().catch((e) => { console.error(e); process.exit(1) })
