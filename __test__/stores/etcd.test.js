// Locks in etcd, on a real server: processes stand for machines.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { test } = require('node:test');
const { etcd } = require('../../lib/stores/etcd.js');
const { createFolder } = require('../helpers/folder.js');
const { freePort, hasEtcd, hasOpenssl, makeCertificate, startEtcd } = require('../helpers/servers.js');
const { serveHttp } = require('../helpers/http.js');
const { borrowMachine } = require('../helpers/store-processes.js');
const { hold } = require('../helpers/names.js');
const { startProxy } = require('../helpers/proxy.js');
const { acquire, notInTheWeather, pause, seen, unlock } = require('../helpers/stores.js');
const { conform } = require('./conformance.js');

/** The least that etcd grants. */
const LEASE = 2000;

const base64 = (text) => Buffer.from(text).toString('base64');
/** All that there is. */
const EVERYTHING = { key: base64('\0'), range_end: base64('\0') };
const keysOf = async (there) => {
  const { kvs = [] } = await there.call('kv/range', { ...EVERYTHING, keys_only: true });
  return kvs.map(({ key }) => Buffer.from(key, 'base64').toString());
};

const { options, open, openThere, server, tickets } = conform({
  kind: 'etcd',
  make: etcd,
  skip: hasEtcd ? false : 'etcd is not installed',
  start: startEtcd,
  clear: (there) => there.call('kv/deleterange', EVERYTHING),
  count: async (there) => (await keysOf(there)).filter((key) => !key.endsWith(':held')).length,
  lease: LEASE,
});

test('fences are the revisions of the keys, and grow among processes and over a restart', options, async (t) => {
  const [here, there] = [open(t), await borrowMachine(t)];
  await openThere(there);
  let last = 0n;
  for (let round = 0; round < 20; round += 1) {
    const mine = await here.request('fences', { fence: true }, (lock) => lock.fence);
    const theirs = await there.do((mine) => mine.manager.request('fences', { fence: true }, (lock) => lock.fence));
    assert.ok(mine > last && theirs > mine, `${last} ${mine} ${theirs}`);
    last = theirs;
    if (round !== 10) continue;
    await server().kill();
    await server().start();
  }
});

test('a server that was killed and comes back in time keeps what is held, and waits go on', options, async (t) => {
  const [here, there] = [open(t), await borrowMachine(t)];
  await openThere(there);
  const lock = await here.acquireAsync('restarted');
  const wait = there.do(acquire, 'restarted');
  await seen(async () => (await tickets()) === 2);
  await server().kill();
  await server().start();
  assert.equal(lock.locked, true);
  assert.equal(lock.unlock(), true);
  assert.equal(await wait, true);
  await there.do(unlock, 'restarted');
});

test(
  'a transaction that compares the revision of lock.key with the fence writes while the lock is held',
  options,
  async (t) => {
    const here = open(t, { namespace: 'naïve' });
    const lock = await here.acquireAsync('compared', { fence: true });
    const write = async () => {
      const compare = [{ key: base64(lock.key), target: 'CREATE', create_revision: String(lock.fence) }];
      const success = [{ request_put: { key: base64('written'), value: '' } }];
      return (await server().call('kv/txn', { compare, success })).succeeded === true;
    };
    assert.equal(await write(), true);
    lock.unlock();
    await seen(async () => !(await write()));
    assert.equal(await here.request('compared', ({ key }) => key), null);
  },
);

/** The lease for which no renewal comes within the time of a test: what is reported comes from the watch. */
const WATCHED = { lease: 600_000, renew: 200_000 };
const watchedOptions = { ...options, skip: options.skip || notInTheWeather('messages are lost there') };

test(
  'a key that an administrator deletes: reported at once; other locks of the session stay',
  watchedOptions,
  async (t) => {
    const here = open(t, WATCHED);
    const held = await hold('deleted', { fence: true }, here);
    const [key] = (await keysOf(server())).filter((each) => !each.endsWith(':held'));
    const other = await here.acquireAsync('other');
    const aborted = new Promise((resolve) => held.lock.signal.addEventListener('abort', resolve));
    await server().call('kv/deleterange', { key: base64(key) });
    await aborted;
    const { reason } = held.lock.signal;
    assert.deepEqual([reason.code, reason.reason, held.lock.locked], ['ERR_LOCK_LOST', 'taken', false]);
    const failure = new Error('of the callback');
    held.fail(failure);
    await assert.rejects(held.request, (error) => error === reason && error.cause === failure);
    assert.equal(other.unlock(), true);
  },
);

test(
  'a lease that is revoked: all of its locks are lost and reported, and the next request has a new one',
  watchedOptions,
  async (t) => {
    const here = open(t, WATCHED);
    const locks = [await here.acquireAsync('one'), await here.acquireAsync('two')];
    const { leases } = await server().call('lease/leases', {});
    const aborted = Promise.all(
      locks.map(({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve))),
    );
    for (const { ID } of leases) await server().call('lease/revoke', { ID });
    await aborted;
    for (const lock of locks) assert.equal(lock.signal.reason.reason, 'taken');
    const again = await here.acquireAsync('one');
    assert.equal(again.abandoned, true);
    again.markConsistent();
    assert.equal(again.unlock(), true);
  },
);

test('shared holders that have just unlocked stand in the way of no ifAvailable', options, async (t) => {
  const proxy = await startProxy(t, server().url);
  const here = open(t, {}, proxy.url);
  const held = [];
  for (let index = 0; index < 2; index += 1) held.push(await here.acquireAsync('shared', { mode: 'shared' }));
  const { taken } = proxy;
  proxy.delay = 500;
  held[0].unlock();
  await seen(() => proxy.taken > taken);
  proxy.delay = 0;
  held[1].unlock();
  const lock = await here.acquireAsync('shared', { ifAvailable: true });
  assert.equal(lock?.unlock(), true);
});

test('a member that accepts no connection is passed over, at the first request too', options, async (t) => {
  const here = open(t, {}, `http://127.0.0.1:1,${server().url}`);
  assert.equal(await here.request('passed over', () => 'granted'), 'granted');
});

test('TLS: the certificate that it is given is trusted, a member that is down is passed over; others are refused', {
  ...options,
  skip: options.skip || (!hasOpenssl && 'openssl is not installed'),
}, async (t) => {
  const folder = createFolder(t);
  const { key, certificate } = makeCertificate(folder);
  let safe;
  const secured = await startEtcd(async (port) => {
    safe = `https://127.0.0.1:${await freePort()}`;
    const urls = `http://127.0.0.1:${port},${safe}`;
    return { 'listen-client-urls': urls, 'cert-file': certificate, 'key-file': key };
  });
  t.after(() => secured.stop());
  const [ca, long] = [fs.readFileSync(certificate), { lease: 20_000 }];
  const here = open(t, long, { endpoints: ['https://127.0.0.1:1', safe], ca });
  const lock = await here.acquireAsync('secret', { fence: true });
  // The stream of deletions too.
  const wait = open(t, { ...long, connectTimeout: 4999 }, { url: safe, ca: String(ca) }).acquireAsync('secret');
  await seen(async () => (await keysOf(secured)).filter((each) => !each.endsWith(':held')).length === 2);
  lock.unlock();
  assert.equal((await wait).unlock(), true);
  await assert.rejects(open(t, long, safe).acquireAsync('secret'), ({ code, cause }) => {
    assert.deepEqual([code, cause.code], ['ERR_LOCK_STORE', 'DEPTH_ZERO_SELF_SIGNED_CERT']);
    return true;
  });
});

test('compaction disturbs no wait', options, async (t) => {
  const [here, there] = [open(t), await borrowMachine(t)];
  await openThere(there);
  const lock = await here.acquireAsync('compacted');
  const wait = there.do(acquire, 'compacted');
  await seen(async () => (await tickets()) === 2);
  const { header } = await server().call('kv/put', { key: base64('something'), value: '' });
  await server().call('kv/compaction', { revision: header.revision, physical: true });
  lock.unlock();
  assert.equal(await wait, true);
  await there.do(unlock, 'compacted');
});

test('who holds elsewhere is shown', options, async (t) => {
  const [here, there] = [open(t), await borrowMachine(t)];
  await openThere(there);
  await there.do(acquire, 'shown', { mode: 'shared' });
  const wait = here.acquireAsync('shown');
  await seen(async () => (await tickets()) === 2);
  // A holder is shown, and nobody who waits behind it.
  for (const [{ held }, isElsewhere] of [
    [await here.query(), true],
    [await there.do((mine) => mine.manager.query()), false],
  ]) {
    assert.deepEqual(
      held.filter(({ name }) => name === 'shown').map(({ mode, clientId }) => [mode, clientId.startsWith('etcd-')]),
      [['shared', isElsewhere]],
    );
  }
  await there.do(unlock, 'shown');
  assert.equal((await wait).unlock(), true);
  await pause(0);
});

test('who holds is asked for more names than a transaction may have operations', options, async (t) => {
  const [here, there] = [open(t), await borrowMachine(t)];
  await openThere(there);
  await there.do(acquire, 'last of many');
  const names = [...Array.from({ length: 200 }, (_, index) => `of many ${index}`), 'last of many'];
  const aborting = new AbortController();
  const waits = Promise.allSettled(names.map((name) => here.acquireAsync(name, { signal: aborting.signal })));
  await seen(async () => (await tickets()) === names.length + 1);
  const { held } = await here.query();
  assert.deepEqual(
    held.filter(({ clientId }) => clientId.startsWith('etcd-')).map(({ name }) => name),
    ['last of many'],
  );
  aborting.abort();
  for (const { value } of await waits) value?.unlock();
});

test('a user and a password; wrong ones are refused at once', options, async (t) => {
  const call = (path, body, token) => server().call(path, body, token);
  await call('auth/user/add', { name: 'root', password: 'secret' });
  await call('auth/role/add', { name: 'root' });
  await call('auth/user/grant', { user: 'root', role: 'root' });
  const as = (user) => server().url.replace('://', `://${user}@`);
  const early = open(t, { lease: 25_000 }, as('root:secret'));
  await early.request('early', () => {});
  await call('auth/enable', {});
  t.after(async () => {
    const { token } = await call('auth/authenticate', { name: 'root', password: 'secret' });
    await call('auth/disable', {}, token);
  });
  const here = open(t, {}, as('root:secret'));
  const lock = await here.acquireAsync('of a user');
  const wait = early.acquireAsync('of a user');
  // The tokens that were given before are over, also those that are asked for meanwhile.
  for (let number = 0; number < 5; number++) {
    const { token } = await call('auth/authenticate', { name: 'root', password: 'secret' });
    const busy = here.request('meanwhile', () => {});
    await call('auth/role/add', { name: `another ${number}` }, token);
    await busy;
  }
  assert.equal(lock.unlock(), true);
  assert.equal((await wait).unlock(), true);
  assert.equal(await here.request('of a user', () => 'again'), 'again');
  for (const user of ['root:wrong', '']) {
    const wrong = open(t, {}, user === '' ? server().url : as(user));
    await assert.rejects(
      wrong.request('refused', () => {}),
      { code: 'ERR_LOCK_STORE', message: /etcdserver|permission/i },
    );
  }
});

test(
  'the rights below the namespace are enough for all that is asked, and there may be no namespace',
  options,
  async (t) => {
    const lone = await startEtcd();
    t.after(() => lone.stop());
    const asksAll = async (user, namespace) => {
      const [here, other] = [1, 2].map((index) =>
        open(t, { namespace, connectTimeout: 4000 + index }, lone.url.replace('://', `://${user}`)),
      );
      assert.ok((await here.check()).roundTripMs > 0);
      const lock = await here.acquireAsync('asked', { fence: true });
      assert.equal(await other.acquireAsync('asked', { ifAvailable: true }), null);
      const wait = other.acquireAsync('asked', { timeout: 10_000 });
      await seen(async () => (await other.query()).held.length === 1);
      assert.equal(lock.unlock(), true);
      assert.equal((await wait).unlock(), true);
      await Promise.all([here.close(), other.close()]);
    };
    await asksAll('', '');
    for (const name of ['root', 'app']) {
      await lone.call('auth/user/add', { name, password: 'secret' });
      await lone.call('auth/role/add', { name });
      await lone.call('auth/user/grant', { user: name, role: name });
    }
    const below = { permType: 'READWRITE', key: base64('sablock/'), range_end: base64('sablock0') };
    await lone.call('auth/role/grant', { name: 'app', perm: below });
    await lone.call('auth/enable', {});
    await asksAll('app:secret@', 'sablock');
  },
);

test('who could not look who is before it looks again, long before its lease is renewed', watchedOptions, async (t) => {
  const proxy = await startProxy(t, server().url);
  const [near, far] = [open(t), open(t, WATCHED, proxy.url)];
  const lock = await near.acquireAsync('looked for');
  const wait = far.acquireAsync('looked for');
  await seen(async () => (await tickets()) === 2);
  let refused = 0;
  proxy.loses = (data, toServer, line) => {
    if (!toServer || refused > 2 || !data.includes('kv/txn')) return false;
    refused += 1;
    line.reset();
    return true;
  };
  lock.unlock();
  const next = await wait;
  assert.ok(refused > 0);
  next.unlock();
});

test(
  'a key that a late call makes, after its request was given up, goes long before its lease is renewed',
  watchedOptions,
  async (t) => {
    const proxy = await startProxy(t, server().url);
    const [near, far] = [open(t), open(t, { ...WATCHED, connectTimeout: 300 }, proxy.url)];
    await far.request('warm', () => {});
    const lock = await near.acquireAsync('late');
    const before = proxy.taken;
    proxy.weather = (_line, toServer, data) => [{ data, ms: toServer && data.includes('kv/txn') ? 1500 : 0 }];
    await assert.rejects(far.acquireAsync('late', { timeout: 500 }), { code: /ERR_LOCK_(?:TIMEOUT|STORE)/ });
    proxy.weather = (_line, _toServer, data) => [{ data, ms: 0 }];
    assert.ok(proxy.taken > before);
    lock.unlock();
    await pause(2500);
    assert.equal((await near.acquireAsync('late', { timeout: 20_000 })).unlock(), true);
  },
);

test('many requests take turns with few connections, and are not kept waiting by a server that does not answer', {
  ...options,
  timeout: 120_000,
}, async (t) => {
  const proxy = await startProxy(t, server().url);
  const here = open(t, { lease: 60_000, connectTimeout: 3000 }, proxy.url);
  let most = 0;
  const watch = setInterval(() => {
    most = Math.max(most, proxy.open);
  }, 1);
  t.after(() => clearInterval(watch));
  const locks = await Promise.all(Array.from({ length: 300 }, (_, index) => here.acquireAsync(`turn ${index}`)));
  assert.ok(most <= 40, `${most} connections`);
  proxy.cut();
  for (const lock of locks) lock.unlock();
  const begun = performance.now();
  await assert.rejects(here.check(), { code: 'ERR_LOCK_STORE' });
  // Ten times 3 s, if each had to wait for those before it.
  const after = performance.now() - begun;
  assert.ok(after < 20_000, `after ${after} ms`);
  proxy.heal();
});

test('an answer that is no message, as of a gateway in between, ends no lock worker', options, async (t) => {
  const elsewhere = open(t);
  const lock = await elsewhere.acquireAsync('of another store');
  const gateway = await serveHttp(t, async (request, response) => {
    let body = '';
    for await (const data of request) body += data;
    if (request.url.endsWith('/watch')) {
      response.writeHead(502).end('<html>\n<p>Bad gateway</p>\n</html>\n');
      return;
    }
    try {
      response.end(await (await fetch(server().url + request.url, { method: 'POST', body })).text());
    } catch {
      // A call at the end came when the server was gone.
      response.destroy();
    }
  });
  const here = open(t, {}, gateway);
  await assert.rejects(here.acquireAsync('never'), { code: 'ERR_LOCK_STORE', message: /etcd does not tell/ });
  assert.equal(lock.unlock(), true);
});

test('bad options are refused before anything is connected', () => {
  for (const wrong of [{ lease: 1999 }, { renew: 9 }, { lease: 2000, renew: 1001 }, { renew: Number.NaN }]) {
    assert.throws(() => etcd('http://x', wrong), { code: 'ERR_OUT_OF_RANGE' });
  }
  for (const wrong of [7, 'x', {}, { endpoints: [] }, { endpoints: ['http://x', 'tcp://y'] }, 'http://%zz@x']) {
    assert.throws(() => etcd(wrong), { code: 'ERR_INVALID_ARG_TYPE' });
  }
});
