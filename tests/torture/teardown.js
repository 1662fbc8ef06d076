// The teardown run: what a thousand workers leave behind that end while they hold or wait, and what ending costs.
//
//   node tests/torture/teardown.js [--workers 1000] [--blocked 100] [--repeats 5]

const { execFileSync } = require('node:child_process');
const { join } = require('node:path');
const { parseArgs } = require('node:util');

const MEGABYTE = 2 ** 20;
const MOST_MEGABYTES = 20;
const MOST_MS = 100;

const { values } = parseArgs({
  options: {
    workers: { type: 'string', default: '1000' },
    blocked: { type: 'string', default: '100' },
    repeats: { type: 'string', default: '5' },
  },
});

/** Runs `teardown/process.js`; returns what it prints. */
function run(...args) {
  const path = join(__dirname, 'teardown', 'process.js');
  const output = execFileSync(process.execPath, ['--expose-gc', '--no-warnings', path, ...args], {
    encoding: 'utf8',
    timeout: 600_000,
    // Few heaps of glibc's, for both: how many it makes, and keeps, is luck, and hides what is really left.
    env: { ...process.env, MALLOC_ARENA_MAX: '2' },
  });
  return JSON.parse(output.trim().split('\n').at(-1));
}

const median = (numbers) => numbers.slice().sort((one, other) => one - other)[numbers.length >> 1];

let failed = 0;
let passed = 0;
function expect(isSo, text) {
  if (isSo) passed += 1;
  else failed += 1;
  console.log(`${isSo ? 'ok    ' : 'FAILED'} ${text}`);
}

function thousand() {
  const megabytes = (bytes) => (bytes / MEGABYTE).toFixed(1);
  const left = {};
  for (const mode of ['none', 'locks']) {
    const { before, after } = run(mode, values.workers);
    left[mode] = after;
    const memory = `${megabytes(before.rss)} -> ${megabytes(after.rss)} MB resident`;
    const threads = `${before.threads.length} -> ${after.threads.length} threads`;
    console.log(`${mode}: ${threads}, ${before.handles} -> ${after.handles} handles, ${memory}`);
    const grew = after.threads.length > before.threads.length ? `: ${before.threads} -> ${after.threads}` : '';
    expect(grew === '', `${values.workers} workers, ${mode}: no growth in threads${grew}`);
    expect(after.handles <= before.handles, `${values.workers} workers, ${mode}: no growth in handles`);
  }
  const more = (left.locks.rss - left.none.rss) / MEGABYTE;
  expect(more <= MOST_MEGABYTES, `${more.toFixed(1)} MB more than without locks; at most ${MOST_MEGABYTES}`);
}

function hundred() {
  const times = { blocks: [], idles: [] };
  for (let time = 0; time < Number(values.repeats); time++) {
    for (const role of ['idles', 'blocks']) {
      const { ms, waiters } = run(role, values.blocked);
      times[role].push(ms);
      if (waiters > 0) expect(false, `${waiters} waiters are left after terminate()`);
    }
  }
  const list = (numbers) => numbers.map((ms) => ms.toFixed(0)).join(', ');
  console.log(
    `terminate() of ${values.blocked} idle workers: ${list(times.idles)} ms; of blocked ones: ${list(times.blocks)} ms`,
  );
  const more = median(times.blocks) - median(times.idles);
  expect(more <= MOST_MS, `${more.toFixed(0)} ms longer than idle ones, by the medians; at most ${MOST_MS}`);
}

thousand();
hundred();
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
