'use strict';

// Two installs of the package in one process, as two versions in node_modules would be.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { execFile } = require('node:child_process');
const { promisify } = require('node:util');
const { createFolder } = require('../helpers/folder.js');
const { limit } = require('../helpers/limits.js');
const { BINARY, installJs, installPackage, PLATFORM } = require('../helpers/installs.js');

const LIMIT = { timeout: limit(40_000) };

/** A folder with installs `a` and `b`. */
function installTwice(t) {
  const folder = createFolder(t);
  for (const name of ['a', 'b']) {
    installJs(path.join(folder, name));
    fs.copyFileSync(BINARY, path.join(folder, name, path.basename(BINARY)));
  }
  fs.copyFileSync(path.join(__dirname, '..', 'programs', 'two-copies.js'), path.join(folder, 'two-copies.js'));
  return folder;
}

const run = (folder) => promisify(execFile)(process.execPath, [path.join(folder, 'two-copies.js')], LIMIT);

test('two copies share one queue: a hold of one is held for the other, and its unlock wakes', LIMIT, async (t) => {
  const { stdout } = await run(installTwice(t));
  assert.deepEqual(stdout.trim().split('\n'), ['held for both', 'the worker got it', 'main got it again']);
});

for (const [which, other] of [
  ['an older', 0],
  ['a newer', 99],
])
  test(`a second copy of ${which} protocol refuses to load, and names both`, LIMIT, async (t) => {
    const folder = installTwice(t);
    const second = path.join(folder, 'b');
    const binary = path.basename(BINARY);
    fs.rmSync(path.join(second, binary));
    installPackage(second, PLATFORM, {
      'index.js': `module.exports = { ...require('./${binary}'), PROTOCOL: ${other} };`,
      [binary]: fs.readFileSync(BINARY),
    });
    await assert.rejects(run(folder), ({ stderr }) => {
      assert.match(stderr, /ERR_LOCK_TWO_COPIES/);
      const [, first, protocol, later] =
        /: (\S+) \(protocol (\d+)\) was loaded first, and (\S+ \(protocol \d+\)) /.exec(stderr);
      assert.ok(first.startsWith(path.join(folder, 'a')), first);
      assert.ok(other === 0 ? protocol > 0 : protocol < other, protocol);
      assert.equal(later, `${second} (protocol ${other})`);
      return true;
    });
  });
