// A primitive in postMessage() is a clear error, where the runtime can.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { MessageChannel } = require('node:worker_threads');

const sablock = require('../..');
const { needs } = require('../helpers/runtime.js');

/** The arguments that follow the buffer and its offset. */
const ARGUMENTS = { Semaphore: [2], Barrier: [2], LockTable: [4] };
const PRIMITIVES = [
  'Mutex',
  'Condition',
  'RwLock',
  'Semaphore',
  'Latch',
  'Barrier',
  'Exchanger',
  'ManualResetEvent',
  'AutoResetEvent',
  'Once',
  'LockTable',
];

for (const name of PRIMITIVES) {
  test(`${name}: can be neither cloned nor posted`, needs('uncloneable'), () => {
    const object = new sablock[name](new SharedArrayBuffer(64), 0, ...(ARGUMENTS[name] ?? []));
    const { port1, port2 } = new MessageChannel();
    for (const send of [() => structuredClone(object), () => port1.postMessage({ object })]) {
      assert.throws(send, { name: 'DataCloneError' });
    }
    port1.close();
    port2.close();
  });
}
