// The fences of locks of the machine, as the backend gives them: drawn with the lock, and kept in its record.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { machineBackend } = require('../../lib/named/backend.js');
const { MODES } = require('../../lib/named/options.js');
const { LockManager } = require('../..');
const { createFolder } = require('../helpers/folder.js');

test('every verb draws a fence if one is wanted, which grows; those who share have the last one', async (t) => {
  const { outer } = machineBackend(createFolder(t));
  const verbs = {
    tryLock: (options) => outer.tryLock('a', options),
    lockAsync: (options) => outer.lockAsync('a', options, { timeout: Infinity }).promise,
    lockBlocking: (options) => outer.lockBlocking('a', options, { timeout: Infinity }),
  };
  let last = BigInt(Date.now()) * 1000n;
  for (const verb of Object.keys(verbs)) {
    const lock = async (mode, fence) => {
      const held = await verbs[verb]({ mode: MODES.indexOf(mode), ref: true, fence });
      held.unlock();
      return held.fence;
    };
    const fence = await lock('exclusive', true);
    assert.ok(fence > last, `${verb}: ${fence} after ${last}`);
    assert.ok(fence <= BigInt(Date.now() + 1) * 1000n);
    assert.equal(await lock('exclusive', false), null);
    assert.equal(await lock('shared', false), null);
    assert.equal(await lock('shared', true), fence);
    last = fence;
  }
});

test('a record of the first format is read, and says who ended', async (t) => {
  const directory = createFolder(t);
  const manager = new LockManager({ directory });
  await manager.request('a', () => {});
  const file = path.join(directory, 'v1-a.info');
  const record = fs.readFileSync(file);
  // As version 1 has it: without the fence.
  const first = Buffer.concat([record.subarray(0, 64), record.subarray(72, -8)]);
  first[7] = 1;
  const { createHash } = require('node:crypto');
  fs.writeFileSync(file, Buffer.concat([first, createHash('sha256').update(first).digest().subarray(0, 8)]));
  assert.equal(await manager.request('a', ({ abandoned }) => abandoned), false);
  assert.equal(fs.readFileSync(file)[7], 2);
});
