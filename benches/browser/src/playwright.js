// The same work with Playwright: snapshots as its own agents get them, clicks and fills.
// Speaks JSON lines: each line in is {do, ...}, each line out is {ms, text?}.
const {chromium} = require('playwright-core');
const readline = require('readline');

(async () => {
  const [program, size] = process.argv.slice(2);
  const [width, height] = size.split('x').map(Number);
  const args = ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
  if (process.getuid() === 0) args.push('--no-sandbox');
  const browser = await chromium.launch({executablePath: program, args});
  const page = await browser.newPage({viewport: {width, height}});
  const deeds = {
    open: async order => { await page.goto(order.url, {waitUntil: 'load'}); },
    snapshot: async () => page.ariaSnapshot({mode: 'ai'}),
    click: async order => { await page.locator(`aria-ref=${order.ref}`).click(); },
    fill: async order => { await page.locator(`aria-ref=${order.ref}`).fill(order.text); },
  };
  // Only now: lines that come before somebody reads them would be lost.
  const lines = readline.createInterface({input: process.stdin});
  for await (const line of lines) {
    const order = JSON.parse(line);
    try {
      const began = process.hrtime.bigint();
      const text = await deeds[order.do](order);
      const ms = Number(process.hrtime.bigint() - began) / 1e6;
      console.log(JSON.stringify({ms, text: text || ''}));
    } catch (error) {
      console.log(JSON.stringify({error: String(error.message || error)}));
    }
  }
  await browser.close();
})();
