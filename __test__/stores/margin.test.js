// A client gives up a lease before its server does: one that is over there is over here first.

const assert = require('node:assert/strict');
const { on } = require('node:events');
const { test } = require('node:test');
const { etcd } = require('../../lib/stores/etcd.js');
const { redis } = require('../../lib/stores/redis.js');
const { startKeeper } = require('../helpers/keepers.js');
const servers = require('../helpers/servers.js');

const LEASE = 20_000;

const KINDS = {
  redis: { isThere: servers.hasRedis, start: servers.startRedis, make: redis },
  etcd: { isThere: servers.hasEtcd, start: servers.startEtcd, make: etcd },
};

for (const [kind, { isThere, start, make }] of Object.entries(KINDS)) {
  test(`${kind}: a twentieth of the lease is given up, counted from before the call that began it`, {
    skip: isThere ? false : `the server of ${kind} is not installed`,
    timeout: 60_000,
  }, async (t) => {
    const server = await start();
    t.after(() => server.stop());
    // Its clock goes on by one with each look.
    const worker = startKeeper(
      t,
      make(server.url, { lease: LEASE }),
      `
      let now = 1000;
      binding.leaseTime = () => (now += 1);
      binding.beginLease = (until) => {
        parentPort.postMessage({ until, now });
        return 1;
      };
      const ticket = { number: 1, name: 'a', isShared: false, isTry: false, isCancelled: false, isRepeated: false, wantsFence: false, place: null };
      keeper.lock(ticket).catch((error) => parentPort.postMessage({ error: String(error) }));`,
    );
    for await (const [{ until, now, error }] of on(worker, 'message')) {
      assert.equal(error, undefined);
      // Beside it the worker tells how the store is reached.
      if (until === undefined) continue;
      // The clock has been looked at a few times since.
      const most = now + LEASE - LEASE / 20;
      assert.ok(until < most && until > most - 100, `until ${until}, ${now} now`);
      return;
    }
  });
}
