// npm run docs:trace-picture: draws docs/guides/images/trace.png. Runs slow-writer.js and opens its trace in the Performance panel of
// the DevTools, which are part of every Chromium: no network is needed, and no other program.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { launch } = require('../../examples/demo/page/helpers/browser.js');

const PICTURE = path.join(__dirname, '../../docs/guides/images/trace.png');
const PANEL = 'devtools://devtools/bundled/devtools_app.html?panel=timeline';
const LIMIT_MS = 30_000;
const SIZE = { width: 900, height: 660 };
/** The panel is drawn on a canvas: its triangles, which open what is below, have no elements. That of the process is first. */
const PROCESS = { x: 10, y: 25 };
const rowAt = (index) => ({ x: 20, y: 42 + 21 * index });
/** A hold of the writer, in microseconds, and a little less. */
const LONG_HOLD = 35_000;

/** Runs the program. Returns the names of the rows of its trace. */
function record(file) {
  const program = path.join(__dirname, 'slow-writer.js');
  execFileSync(process.execPath, [program, file], { stdio: ['ignore', 2, 2], timeout: LIMIT_MS });
  const { traceEvents } = JSON.parse(fs.readFileSync(file, 'utf8'));
  const has = (kind, least) => traceEvents.some(({ cat, ph, dur }) => cat === kind && ph === 'X' && dur >= least);
  if (!has('hold', LONG_HOLD) || !has('wait', LONG_HOLD / 2)) throw new Error('The trace does not show a slow writer.');
  const drawn = new Set(traceEvents.filter(({ ph }) => ph === 'X').map(({ tid }) => tid));
  return traceEvents.filter(({ ph, tid }) => ph === 'M' && drawn.has(tid)).map(({ args }) => args.name);
}

/** Waits until the page is drawn and does not change any more; returns its picture. */
async function settled(page) {
  let before = await page.screenshot();
  for (;;) {
    await sleep(300);
    const now = await page.screenshot();
    if (now.equals(before)) return now;
    before = now;
  }
}

async function draw(file, rows) {
  const browser = await launch();
  try {
    const page = await browser.newPage({ viewport: SIZE });
    page.setDefaultTimeout(LIMIT_MS);
    await page.goto(PANEL);
    await page.locator('input[type=file]').setInputFiles(file);
    await page.getByRole('button', { name: 'Close' }).first().click();
    await page
      .getByRole('button', { name: /sidebar/i })
      .first()
      .click();
    const canvas = page.locator('canvas.flame-chart-canvas');
    const points = [PROCESS, ...rows.map((_, index) => rowAt(rows.length - 1 - index))];
    let picture = await settled(page);
    for (const position of points) {
      await canvas.click({ position });
      const next = await settled(page);
      if (next.equals(picture))
        throw new Error('A row of the panel did not open: it is drawn in another way than it was.');
      picture = next;
    }
    // No name of what the mouse is above.
    await page.mouse.move(SIZE.width / 2, 1);
    await settled(page);
    // The part below the rows says nothing.
    const { x, y, width, height } = await canvas.boundingBox();
    return await page.screenshot({ clip: { x, y: 0, width, height: y + height } });
  } finally {
    await browser.close();
  }
}

async function main() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-trace-'));
  try {
    const file = path.join(folder, 'locks.json');
    const rows = record(file);
    fs.writeFileSync(PICTURE, await draw(file, rows));
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

main();
