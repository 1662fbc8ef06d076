// Modes: who gets in beside whom, in which order, and what is available.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { locks } = require('../..');
const { AVAILABLE, hold, modesOf, pendingFor, turns } = require('../helpers/names.js');
const { askForName, startActors, startBusyActor } = require('../helpers/actors.js');
const { watched } = require('../helpers/threads.js');

const shared = { mode: 'shared' };

test('shared requests go in together, exclusive ones alone, in the order in which they came', async () => {
  const order = [];
  const ask = (label, mode) =>
    locks.request('mixed', { mode }, async () => {
      order.push(`+${label}`);
      await turns();
      order.push(`-${label}`);
    });
  await Promise.all([
    ask('s1', 'shared'),
    ask('s2', 'shared'),
    ask('x', 'exclusive'),
    ask('s3', 'shared'),
    ask('s4', 'shared'),
  ]);
  assert.deepEqual(order, ['+s1', '+s2', '-s1', '-s2', '+x', '-x', '+s3', '+s4', '-s3', '-s4']);
});

test('nobody overtakes: a shared request waits behind an exclusive one, though shared ones are in', async () => {
  const reader = await hold('strict', shared);
  const writer = locks.request('strict', () => 'writer');
  const late = locks.request('strict', shared, () => 'late');
  await turns();
  assert.deepEqual(await modesOf('strict'), { held: ['shared'], pending: ['exclusive', 'shared'] });
  assert.equal(await locks.request('strict', { ...shared, ifAvailable: true }, (lock) => lock), null);
  reader.release();
  assert.deepEqual(await Promise.all([writer, late]), ['writer', 'late']);
});

test('a request for another name does not wait', async () => {
  const held = await hold('one');
  assert.equal(await locks.request('another', () => 'in'), 'in');
  held.release();
  await held.request;
});

for (const [holder, asked, isAvailable] of AVAILABLE) {
  test(`ifAvailable for ${asked}, while held ${holder ?? 'by nobody'}: ${isAvailable ? 'granted' : 'null'}`, async () => {
    const held = holder === null ? null : await hold('available', { mode: holder });
    const got = await locks.request('available', { mode: asked, ifAvailable: true }, (lock) => lock?.mode ?? null);
    assert.equal(got, isAvailable ? asked : null);
    assert.deepEqual((await modesOf('available')).pending, [], 'it does not wait');
    held?.release();
    await held?.request;
  });
}

test('a callback that gets null may return a result, return a promise, or fail', async () => {
  const held = await hold('null');
  const ask = (callback) => locks.request('null', { ifAvailable: true }, callback);
  assert.equal(await ask(() => 1), 1);
  assert.equal(await ask(async () => 2), 2);
  const error = new Error('on purpose');
  await assert.rejects(
    ask(() => {
      throw error;
    }),
    error,
  );
  await assert.rejects(
    ask(async () => {
      throw error;
    }),
    error,
  );
  held.release();
  await held.request;
});

test(
  'threads and promises of several threads are served in one order',
  watched(async (_, threads) => {
    const held = await hold('threads');
    const actors = await startActors(threads, 3);
    const order = new Int32Array(new SharedArrayBuffer(64));
    const asked = [];
    for (let index = 0; index < 6; index++) {
      const actor = actors[index % 3];
      // The second round blocks its thread.
      const verb = index < 3 ? 'request' : 'requestSync';
      asked.push(
        actor.do(
          (here, verb, index, order) =>
            here.sablock.locks[verb]('threads', () => {
              order[1 + Atomics.add(order, 0, 1)] = index;
            }),
          verb,
          index,
          order,
        ),
      );
      // A blocked thread takes no message: the promise of its first round is settled after its second.
      await pendingFor(threads, 'threads', index + 1);
      if (index === 2) break;
    }
    held.release();
    await Promise.all(asked);
    assert.deepEqual([...order.subarray(0, 4)], [3, 0, 1, 2]);
  }),
);

test(
  'a thread that is busy delays those behind it: order comes first',
  watched(async (_, threads) => {
    const held = await hold('stalled');
    const busy = await startBusyActor(threads, askForName, 'stalled');
    let isServed = false;
    const second = locks.request('stalled', () => {
      isServed = true;
    });
    held.release();
    await turns();
    const { held: rows } = await locks.query();
    assert.deepEqual(
      rows.filter(({ name }) => name === 'stalled').map(({ threadId }) => threadId),
      [busy.actor.threadId],
    );
    assert.equal(isServed, false);
    busy.goOn();
    assert.equal(await busy.asked, 'had');
    await second;
  }),
);
