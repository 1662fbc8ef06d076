'use strict';

// Two installs of the package in one process, as two versions in node_modules would be.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { execFile } = require('node:child_process');
const { promisify } = require('node:util');

const ROOT = path.join(__dirname, '..');
const LIMIT = { timeout: 40_000 };

/** A folder with installs `a` and `b`, removed after the test. */
function installTwice(t) {
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-two-')));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const binaries = fs.readdirSync(ROOT).filter((file) => file.endsWith('.node'));
  for (const name of ['a', 'b']) {
    for (const file of ['package.json', 'index.js', 'lib', 'binding.js', ...binaries]) {
      fs.cpSync(path.join(ROOT, file), path.join(folder, name, file), { recursive: true });
    }
  }
  fs.copyFileSync(path.join(__dirname, 'programs', 'two-copies.js'), path.join(folder, 'two-copies.js'));
  return folder;
}

const run = (folder) => promisify(execFile)(process.execPath, [path.join(folder, 'two-copies.js')], LIMIT);

test('two copies share one queue: a hold of one is held for the other, and its unlock wakes', LIMIT, async (t) => {
  const { stdout } = await run(installTwice(t));
  assert.deepEqual(stdout.trim().split('\n'), ['held for both', 'the worker got it', 'main got it again']);
});

test('a second copy of another protocol refuses to load, and names both', LIMIT, async (t) => {
  const folder = installTwice(t);
  fs.renameSync(path.join(folder, 'b', 'binding.js'), path.join(folder, 'b', 'true-binding.js'));
  fs.writeFileSync(
    path.join(folder, 'b', 'binding.js'),
    "module.exports = { ...require('./true-binding.js'), PROTOCOL: 0 };\n",
  );
  await assert.rejects(run(folder), ({ stderr }) => {
    assert.match(stderr, /ERR_LOCK_TWO_COPIES/);
    assert.ok(stderr.includes(path.join(folder, 'a')) && stderr.includes(path.join(folder, 'b')), stderr);
    return true;
  });
});
