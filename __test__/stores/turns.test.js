// Names that have no session to block in: the session that never blocks tries for them. The sessions are the test.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Releases } = require('../../lib/stores/retry.js');
const { Waits } = require('../../lib/stores/sessions/waits.js');
const { deferred, turns } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');

const KEY = 'a key';

/** A home whose next try is answered when the test says so, and waits with no session of their own. */
function createWaits(t) {
  const tries = [];
  const home = {
    held: new Map(),
    log: [],
    async take(key) {
      const answer = deferred();
      tries.push(answer);
      const isDone = await answer.promise;
      if (isDone) home.held.set(key, 1);
      return isDone;
    },
    letGo: (key) => home.held.delete(key),
    async unlock(key) {
      home.log.push(`unlock ${key}`);
    },
  };
  const never = () => new Promise(() => {});
  const releases = new Releases();
  const connect = async () => home;
  const waits = new Waits({ limit: 1, open: never, home: () => home, connect, releases, heartbeat: 60_000 });
  t.after(() => waits.close());
  return { waits, home, tries, releases };
}

/** What becomes of a wait while its try is under way: whether it gets what the try has brought. */
const MEANWHILE = {
  'nothing happens': [true, () => {}],
  'it is cancelled': [false, (waits, ticket) => waits.cancel(ticket)],
  'its store is closed': [false, (waits) => waits.close()],
};

for (const [what, [gets, act]] of Object.entries(MEANWHILE)) {
  test(
    `a try that has the lock, while ${what}: ${gets ? 'the wait has it' : 'it is unlocked, and not held'}`,
    watched(async (t, threads) => {
      const { waits, home, tries, releases } = createWaits(t);
      const ticket = { isShared: false, isCancelled: false };
      const over = waits.wait(ticket, KEY);
      await threads.until('it is tried', () => tries.length > 0);
      act(waits, ticket);
      // The next who tries the name comes after that.
      const log = releases.over(KEY).then(() => [...home.log]);
      await turns();
      tries[0].resolve(true);
      assert.equal(await over, gets ? home : null);
      await turns();
      assert.deepEqual([await log, home.held.size], gets ? [[], 1] : [[`unlock ${KEY}`], 0]);
    }),
  );
}

test(
  'of many that have no session 32 are tried at a time, all of them in turn, and one again only once it was answered',
  watched(async (t, threads) => {
    const { waits, home } = createWaits(t);
    const tried = [];
    const stuck = deferred();
    home.take = async (key) => {
      tried.push(key);
      if (key === 'key 1') await stuck.promise;
      return false;
    };
    const keys = Array.from({ length: 70 }, (_, index) => `key ${index}`);
    for (const key of keys) waits.wait({ isShared: false, isCancelled: false }, key);
    const again = keys.filter((key) => key !== 'key 1');
    await threads.until('all are tried twice', () => tried.length >= 139);
    assert.deepEqual(tried.slice(0, 139), [...keys, ...again]);
    const many = tried.length;
    stuck.resolve();
    await threads.until('it is tried again', () => tried.indexOf('key 1', many) >= 0);
  }),
);
