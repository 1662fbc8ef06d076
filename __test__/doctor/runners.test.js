// The doctor under what runs TypeScript and tests: their own loaders, source maps, pools of threads, and realms.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { pathToFileURL } = require('node:url');
const { PRELOAD, firstLines, home, run, write } = require('../helpers/doctored-programs.js');
const { limit } = require('../helpers/limits.js');
const { folderOf, withTool } = require('../helpers/runners.js');

const [tsx, vitest] = ['tsx', 'vitest'].map(folderOf);

/** The code that both have in common, from the third line on. */
const NESTED = `
interface Session {
  token: string | null;
}

const session: Mutex = new Mutex(new SharedArrayBuffer(4), 0, { name: 'session' });
const state: Session = { token: null };

async function refreshToken(): Promise<void> {
  await session.executeLocked(() => {
    state.token = 'new';
  });
}

async function getUser(): Promise<void> {
  await session.executeLocked(async () => {
    if (state.token === null) await refreshToken();
  });
}

async function untilReported(): Promise<void> {
  const doctor = start();
  while (doctor.report().deadlocks.length === 0) await new Promise((next) => setTimeout(next, 10));
  doctor.print();
}
`;
const IMPORTS = "import { Mutex } from 'sablock';\nimport { start } from 'sablock/doctor';";

const leads = (text, file) => {
  const report = firstLines(text.slice(text.indexOf('sablock doctor: ')));
  assert.match(report, /^DEADLOCK \(likely\)/m, text);
  assert.match(report, new RegExp(`held by {3}thread \\d+ {2}getUser \\(.*${file}:18:17\\)`), text);
  assert.match(report, new RegExp(`wanted by thread \\d+ {2}refreshToken \\(.*${file}:12:17\\)`), text);
};

test('a TypeScript program that tsx runs is reported as it was written', withTool(tsx), async () => {
  write('app.mts', `${IMPORTS}\n${NESTED}\ngetUser();\nuntilReported().then(() => process.exit());\n`);
  const loader = pathToFileURL(path.join(tsx, 'dist', 'loader.mjs')).href;
  for (const args of [
    [...PRELOAD, '--import', loader],
    ['--import', loader, ...PRELOAD],
  ]) {
    leads((await run([...args, 'app.mts'])).stderr, 'app\\.mts');
  }
});

for (const pool of ['forks', 'threads', 'vmThreads']) {
  test(`a test that hangs under Vitest is reported as it was written: ${pool}`, withTool(vitest), async () => {
    const folder = path.join(home, pool);
    fs.mkdirSync(folder);
    const body = `test('hangs', async () => {\n  getUser();\n  await untilReported();\n}, ${limit(60_000)});\n`;
    write(path.join(pool, 'user.test.ts'), `${IMPORTS}\n${NESTED}\n${body}`);
    const args = [path.join(vitest, 'vitest.mjs'), 'run', '--globals', '--root', folder, '--pool', pool];
    const { code, stdout, stderr } = await run(args, { env: { NODE_OPTIONS: PRELOAD.join(' '), NO_COLOR: '1' } });
    assert.equal(code, 0, stdout + stderr);
    leads(stdout + stderr, 'user\\.test\\.ts');
  });
}
