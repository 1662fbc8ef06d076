// The client of a store among what is installed: the first that can be used, where the package or the main script finds it.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { findClient } = require('../../lib/stores/client.js');
const { createFolder } = require('../helpers/folder.js');

/** Installs packages that only the main script of this name finds, which say their names; `main` is it until the test is over. */
function install(t, ...names) {
  const folder = createFolder(t);
  for (const name of names) {
    const root = path.join(folder, 'node_modules', name);
    fs.mkdirSync(root, { recursive: true });
    fs.writeFileSync(path.join(root, 'index.js'), `module.exports = ${JSON.stringify({ of: name })};`);
  }
  const [node, main] = process.argv;
  process.argv[1] = path.join(folder, 'main.js');
  t.after(() => {
    process.argv[1] = main;
    assert.equal(process.argv[0], node);
  });
  return folder;
}

test('the first that is installed is taken, of those that only the main script finds too', (t) => {
  install(t, 'sablock-one', 'sablock-two');
  assert.deepEqual(findClient(['sablock-two', 'sablock-one']), { name: 'sablock-two', client: { of: 'sablock-two' } });
  assert.deepEqual(findClient(['sablock-none', 'sablock-one']).name, 'sablock-one');
  // The order of names counts, wherever they are found.
  assert.equal(findClient(['sablock-one', 'pg']).name, 'sablock-one');
  // This package finds it first.
  assert.equal(findClient(['pg', 'sablock-one']).client, require('pg'));
});

test('one that is too old is passed over for the next, and said if there is none', (t) => {
  const folder = install(t, 'sablock-old', 'sablock-new');
  const isUsable = (name, client) => {
    assert.deepEqual(client, { of: name });
    return name !== 'sablock-old';
  };
  assert.equal(findClient(['sablock-old', 'sablock-new'], isUsable).name, 'sablock-new');
  const thrown = (names) => {
    try {
      return findClient(names, isUsable);
    } catch (error) {
      return error;
    }
  };
  const { code, isFinal, message, cause } = thrown(['sablock-old']);
  assert.deepEqual([code, isFinal], ['ERR_LOCK_NO_CLIENT', true]);
  assert.match(message, /^No client for this store is installed\. Run `npm install sablock-old`/);
  assert.equal(
    cause.message,
    `The sablock-old that is installed is too old (${fs.realpathSync(path.join(folder, 'node_modules', 'sablock-old', 'index.js'))}).`,
  );
  assert.equal(thrown(['sablock-none']).cause.code, 'MODULE_NOT_FOUND');
});

test('a process without a main script finds what the package finds', (t) => {
  install(t);
  for (const main of ['', undefined]) {
    process.argv[1] = main;
    assert.equal(findClient(['pg']).client, require('pg'));
    assert.throws(() => findClient(['sablock-none']), { code: 'ERR_LOCK_NO_CLIENT' });
  }
});

test('of a client that is made of several packages the needed one is taken', () => {
  const { client } = findClient(['redis']);
  assert.equal(
    client.createClient,
    require(require.resolve('@redis/client', { paths: [require.resolve('redis')] })).createClient,
  );
});
