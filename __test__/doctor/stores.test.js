// Names that another machine holds: the process's hold of such a name is none yet, however long its request waits.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockManager } = require('../../index.js');
const { binding } = require('../../lib/engine/thread.js');
const { redis } = require('../../lib/stores/redis.js');
const { limit } = require('../helpers/limits.js');
const { about, sleep, withDoctor } = require('../helpers/doctor.js');
const { hasRedis, startRedis } = require('../helpers/servers.js');
const { startMachine } = require('../helpers/store-processes.js');

const LONG_MS = 100;
const options = { skip: hasRedis ? false : 'redis-server is not installed', timeout: limit(60_000) };

/** A server, and a machine that holds `name` there. */
async function heldElsewhere(t, name) {
  const server = await startRedis();
  t.after(() => server.stop());
  const there = await startMachine(t);
  const hold = async (mine, url, name) => {
    mine.manager = new mine.sablock.LockManager({ store: mine.open('redis', url, {}) });
    mine.held.set('a', await mine.manager.acquireAsync(name));
  };
  await there.do(hold, server.url, name);
  return { server, there };
}

test('a request that waits at a store is no long hold; what it holds then for long is one', options, async (t) => {
  const { server, there } = await heldElsewhere(t, 'nightly');
  await withDoctor({ longHoldMs: LONG_MS, stuckMs: Infinity, likelyMs: Infinity }, async (doctor) => {
    const manager = new LockManager({ store: redis(server.url) });
    t.after(() => manager.close());
    // A store that is reached for the first time may take longer than the request has.
    await manager.check();
    const long = () => about(doctor.report().longHolds, { name: 'nightly' });
    await assert.rejects(
      manager.request('nightly', { timeout: 3 * LONG_MS }, () => {}),
      { code: 'ERR_LOCK_TIMEOUT' },
    );
    const aborted = AbortSignal.timeout(3 * LONG_MS);
    await assert.rejects(
      manager.request('nightly', { signal: aborted }, () => {}),
      { name: 'TimeoutError' },
    );
    const request = manager.request('nightly', async () => {
      assert.deepEqual(long(), []);
      while (long().length === 0) await sleep(5);
    });
    await sleep(3 * LONG_MS);
    assert.deepEqual(long(), []);
    await there.do((mine) => mine.held.get('a').unlock());
    await request;
    assert.equal(long().length, 1);
    assert.match(binding.doctorRead(binding.Reading.Text), /^LONG HOLD: lock "nightly" of the store, /m);
  });
});

test('a thread that blocks at a store holds nothing meanwhile, and holds what it has got then', options, async (t) => {
  const { server, there } = await heldElsewhere(t, 'hourly');
  await withDoctor({ longHoldMs: LONG_MS, stuckMs: Infinity, likelyMs: Infinity }, async (doctor) => {
    const manager = new LockManager({ store: redis(server.url), allowMainThread: true });
    t.after(() => manager.close());
    await manager.check();
    const long = () => about(doctor.report().longHolds, { name: 'hourly' });
    for (const ask of [
      () => manager.requestSync('hourly', { timeout: 3 * LONG_MS }, () => {}),
      () => manager.acquire('hourly', { timeout: 3 * LONG_MS }),
    ]) {
      assert.throws(ask, { code: 'ERR_LOCK_TIMEOUT' });
      assert.deepEqual(long(), []);
      assert.deepEqual(about(doctor.report().waiting, { name: 'hourly' }), []);
    }
    await there.do((mine) => mine.held.get('a').unlock());
    const held = manager.acquire('hourly');
    while (long().length === 0) await sleep(5);
    held.unlock();
  });
});

test('the thread that keeps the connections is not one that the doctor has missed', options, async (t) => {
  const server = await startRedis();
  t.after(() => server.stop());
  await withDoctor({}, async (doctor) => {
    const manager = new LockManager({ store: redis(server.url) });
    t.after(() => manager.close());
    await manager.request('kept', () => assert.deepEqual(doctor.report().threadsWithoutDoctor, []));
  });
});

test(
  'requests for a name that another machine holds wait, each with its place, and hold nothing',
  options,
  async (t) => {
    const { server, there } = await heldElsewhere(t, 'weekly');
    await withDoctor({ longHoldMs: Infinity, stuckMs: LONG_MS, likelyMs: LONG_MS }, async (doctor) => {
      const manager = new LockManager({ store: redis(server.url) });
      t.after(() => manager.close());
      const writeReport = () => manager.request('weekly', () => {});
      const mailReport = () => manager.request('weekly', () => {});
      const requests = [writeReport(), mailReport()];
      const seen = () => about(doctor.report().waiting, { name: 'weekly' });
      const isOld = ({ waitedMs }) => waitedMs >= 4 * LONG_MS;
      while (seen().length < 2 || !seen().every(isOld)) await sleep(5);
      const callers = seen().map(({ waiter }) => waiter.stack[0].split(' ')[0]);
      assert.deepEqual(callers.sort(), ['mailReport', 'writeReport']);
      // Neither has it, so nobody here is said to hold it.
      assert.deepEqual(
        seen().flatMap(({ holders }) => holders),
        [],
      );
      const stuck = () => about(doctor.report().stuck, { name: 'weekly' });
      while (!stuck().some(({ outside }) => outside.clientId !== null)) await sleep(5);
      const { holders, outside, waiters } = stuck().at(-1);
      assert.deepEqual(holders, []);
      assert.match(outside.clientId, /^redis-/);
      assert.deepEqual(waiters.map(({ stack }) => stack[0].split(' ')[0]).sort(), ['mailReport', 'writeReport']);
      await there.do((mine) => mine.held.get('a').unlock());
      await Promise.all(requests);
      assert.deepEqual(seen(), []);
      assert.deepEqual(about(doctor.report().contention, { name: 'weekly' }).length, 1);

      // Once more, after a time in which there was nothing to ask the store.
      await sleep(2 * LONG_MS);
      const before = stuck().length;
      await there.do(async (mine) => {
        mine.held.set('b', await mine.manager.acquireAsync('weekly'));
      });
      const again = writeReport();
      while (
        !stuck()
          .slice(before)
          .some(({ outside }) => outside.clientId !== null)
      )
        await sleep(5);
      await there.do((mine) => mine.held.get('b').unlock());
      await again;
    });
  },
);
