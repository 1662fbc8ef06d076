// The core of what the package promises holds whatever else lives in the process: each of these surroundings sees the same.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const path = require('node:path');
const { test } = require('node:test');
const { promisify } = require('node:util');
const { createFolder } = require('../helpers/folder.js');
const { limit } = require('../helpers/limits.js');
const { needs } = require('../helpers/runtime.js');
const { expectTheSame, seenIn, seenWithout } = require('../helpers/surrounded.js');
const { USES } = require('../programs/collected-loads.js');
const { SURROUNDINGS } = require('./surroundings.js');

const COLLECTED = path.join(__dirname, '..', 'programs', 'collected-loads.js');
const LIMIT = { timeout: limit(60_000), ...needs("V8's flags") };

test('without anything else each verb comes to what it promises', LIMIT, async () => {
  const seen = await seenWithout();
  assert.ok(seen.length > 80, seen.join('\n'));
  assert.ok(seen.includes('Mutex, plain: freed: true') && seen.includes('deadlock: DeadlockError: ERR_LOCK_DEADLOCK'));
  assert.deepEqual(
    seen.filter((line) => /pending|undefined$|failed/.test(line)),
    [],
  );
});

for (const [name, { differs }] of Object.entries(SURROUNDINGS)) {
  if (name === 'nothing') continue;
  test(`${name}: each verb comes to the same`, LIMIT, async () => {
    await expectTheSame(await seenIn(name), differs);
  });
}

/** The number of environments that were not collected, by use. */
async function collect(t) {
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', COLLECTED, createFolder(t)], { env });
  return JSON.parse(stdout);
}

let left;
for (const use of Object.keys(USES)) {
  test(`an environment that has loaded the package and used ${use} is collected once it is dropped`, {
    timeout: limit(60_000),
    ...needs("V8's flags", 'complete collection'),
  }, async (t) => {
    left ??= collect(t);
    assert.equal((await left)[use], 0);
  });
}
