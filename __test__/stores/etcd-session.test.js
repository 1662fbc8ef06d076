// The loop by which a session of etcd tries again what a call in vain has left, beside a server that is written here.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Session } = require('../../lib/stores/etcd/session.js');
const { pause, seen } = require('../helpers/stores.js');

/** A session that has begun, whose server grants and renews leases; `of` replaces what else it asks for. */
async function begun(t, of) {
  const calls = { renewals: 0 };
  const session = new Session({
    settings: { lease: 600_000, renew: 200_000, connectTimeout: 5000 },
    async call(path) {
      if (path === 'lease/keepalive') calls.renewals += 1;
      return { ID: '1', TTL: '600' };
    },
    transact: async () => {},
    watch(onMessage) {
      setImmediate(onMessage, { created: true });
      return () => {};
    },
    onRenewed() {},
    onDeleted() {},
    onEnd() {},
    ...of,
  });
  t.after(() => session.close());
  await session.begin();
  return { session, calls };
}

test('a lease is asked for in whole seconds, and no shorter than it is to be', async (t) => {
  const asked = [];
  const settings = { lease: 2400, renew: 200_000, connectTimeout: 5000 };
  const call = async (path, { TTL }) => {
    if (path === 'lease/grant') asked.push(Number(TTL));
    return { ID: '1', TTL: '3' };
  };
  await begun(t, { settings, call });
  assert.deepEqual(asked, [3]);
});

test('a lease that ends before deletions are reported is the error of the beginning', {
  timeout: 60_000,
}, async (t) => {
  const revoked = [];
  const slow = begun(t, {
    call: async (path) => {
      if (path === 'lease/revoke') revoked.push(path);
      return { ID: '1', TTL: '1' };
    },
    // Nothing comes, until the session ends it.
    watch(_onMessage, onEnd) {
      const open = setInterval(() => {}, 1000);
      return () => {
        clearInterval(open);
        onEnd(new Error('it ended'));
      };
    },
  });
  await assert.rejects(slow, { code: 'ERR_LOCK_STORE', message: 'etcd has not answered before the end of the lease.' });
  assert.notEqual(revoked.length, 0);
});

test('a lease whose deletions cannot be reported is revoked, and why is the error of the beginning', {
  timeout: 60_000,
}, async (t) => {
  const called = [];
  const refused = new Error('refused');
  const session = begun(t, {
    call: async (path, { ID }) => {
      called.push([path, ID]);
      // That it cannot be revoked is nobody's error: it ends by itself.
      if (path === 'lease/revoke') throw new Error('refused, too');
      return { ID: '7', TTL: '600' };
    },
    watch(_onMessage, onEnd) {
      setImmediate(onEnd, refused);
      return () => {};
    },
  });
  await assert.rejects(session, refused);
  assert.deepEqual(called, [
    ['lease/grant', undefined],
    ['lease/revoke', '7'],
  ]);
});

test('what is missed while strays are deleted is seen to next', { timeout: 60_000 }, async (t) => {
  let deleted;
  const { session, calls } = await begun(t, {
    transact: () =>
      new Promise((resolve) => {
        deleted = resolve;
      }),
  });
  session.addStray('key', {}, true);
  await seen(() => deleted !== undefined);
  const before = calls.renewals;
  session.renewSoon();
  deleted();
  await seen(() => calls.renewals > before);
});

for (const ms of [0, 120]) {
  test(`where renewals succeed and what they begin fails after ${ms} ms, it renews after pauses that grow`, {
    timeout: 60_000,
  }, async (t) => {
    const place = { looking: null };
    const { session, calls } = await begun(t, {
      onRenewed() {
        place.looking = pause(ms).then(() => session.renewSoon());
      },
    });
    session.places.set('key', place);
    session.renewSoon();
    await pause(1600);
    // At once, and after 50 ms, 100 ms, ...
    assert.ok(calls.renewals > 1 && calls.renewals < 12, `${calls.renewals} renewals`);
  });
}

test('a key that may be made still is deleted until it cannot be, another once', { timeout: 60_000 }, async (t) => {
  const steps = [];
  const { session } = await begun(t, { transact: async (step) => steps.push(step) });
  session.addStray('sure', 'sure', true);
  session.addStray('late', 'late', false);
  await seen(() => steps.length >= 4);
  assert.equal(steps.filter((step) => step === 'sure').length, 1);
});
