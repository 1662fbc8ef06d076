// `sablock locks` while others take locks. No process is started.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { LockManager } = require('../../index.js');
const locks = require('../../lib/cli/locks.js');
const { createFolder } = require('../helpers/folder.js');
const { needs } = require('../helpers/runtime.js');

test('a lock that is taken after the question who holds is none of a process that has ended', {
  ...needs('preloading'),
}, async (t) => {
  const directory = createFolder(t);
  const manager = new LockManager({ directory });
  const before = await manager.acquireAsync('before');
  const taken = Date.now();
  while (Date.now() <= taken) await nextTurn();
  let after;
  // As when the processes that live say nothing of the first, whose own has ended, and the second was not held yet.
  t.mock.method(LockManager.prototype, 'query', async () => {
    after = await manager.acquireAsync('after');
    return { held: [], pending: [] };
  });
  const { write } = process.stdout;
  let printed;
  t.mock.method(process.stdout, 'write', (text, ...rest) => {
    if (!String(text).startsWith('[{')) return write.call(process.stdout, text, ...rest);
    printed = text;
    return true;
  });
  await locks([directory, '--json']);
  assert.deepEqual(
    JSON.parse(printed).map(({ name, alive }) => [name, alive]),
    [['before', false]],
  );
  before.unlock();
  after.unlock();
});
