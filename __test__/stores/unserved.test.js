// A member of etcd that does not serve. What it says tells whether it has applied the call: one that may have is not sent it twice, for
// the second key would stand in the line with nobody behind it.

const assert = require('node:assert/strict');
const http = require('node:http');
const { describe, test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { LockManager } = require('../..');
const { etcd } = require('../../lib/stores/etcd.js');
const { serveHttp } = require('../helpers/http.js');
const { limit } = require('../helpers/limits.js');
const servers = require('../helpers/servers.js');

/** The words of a member, and whether it has applied the call before. */
const SAYS = {
  'no leader': [false, 503, { code: 14, error: 'etcdserver: no leader' }],
  'request timed out': [true, 503, { code: 14, error: 'etcdserver: request timed out' }],
  'what a proxy says': [true, 502, '<html>Bad gateway</html>'],
};

/** Returns what the server says; null if it is gone, as at the end of a test. */
async function send(url, path, body) {
  try {
    const response = await fetch(new URL(path, url), { method: 'POST', body });
    return [response.status, await response.text()];
  } catch {
    return null;
  }
}

/** A member in front of `url` that answers the first `kv/txn` after `fail()` as it is told, and passes on all else. */
async function startMember(t, url) {
  const member = { next: null, failed: 0, answered: 0 };
  member.url = await serveHttp(t, async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    const says = request.url === '/v3/kv/txn' ? member.next : null;
    if (request.url === '/v3/watch') {
      // A stream: piped.
      const up = http.request(new URL(request.url, url), { method: 'POST' }, (down) => {
        response.writeHead(down.statusCode);
        down.pipe(response);
        down.on('error', () => response.destroy());
      });
      up.on('error', () => response.destroy());
      response.on('close', () => up.destroy());
      up.end(body);
      return;
    }
    if (says === null) {
      const answer = await send(url, request.url, body);
      if (answer === null) {
        response.destroy();
        return;
      }
      const [status, text] = answer;
      response.writeHead(status).end(text);
      if (request.url === '/v3/kv/txn') member.answered += 1;
      return;
    }
    member.next = null;
    member.failed += 1;
    const [isApplied, status, text] = says;
    if (isApplied) await send(url, request.url, body);
    response.writeHead(status).end(typeof text === 'string' ? text : JSON.stringify(text));
  });
  return member;
}

const SETTINGS = { skip: servers.hasEtcd ? false : 'etcd is not installed', timeout: limit(60_000) };

/** etcd, a member in front of it, and `open(...urls)`, which makes a manager of them. */
async function startBoth(t) {
  const server = await servers.startEtcd();
  t.after(() => server.stop());
  const member = await startMember(t, server.url);
  const open = (...urls) => {
    const manager = new LockManager({ store: etcd(urls.join()) });
    t.after(() => manager.close());
    return manager;
  };
  return { member, server, open };
}

const VERBS = {
  acquireAsync: (manager) => manager.acquireAsync('job', { timeout: 3000 }),
  'acquireAsync, tried': (manager) => manager.acquireAsync('job', { ifAvailable: true }),
  'acquireAsync, shared': (manager) => manager.acquireAsync('job', { mode: 'shared', timeout: 3000 }),
};

describe('a member of etcd that does not serve', { concurrency: 4 }, () => {
  for (const [says, answer] of Object.entries(SAYS)) {
    for (const [verb, ask] of Object.entries(VERBS)) {
      test(`${says}: ${verb} leaves nothing in the line`, SETTINGS, async (t) => {
        const { member, server, open } = await startBoth(t);
        const manager = open(member.url, server.url);
        await manager.request('before', () => {});
        // Awaits the release.
        await manager.check();
        member.next = answer;
        const lock = await ask(manager).catch((error) => error);
        assert.equal(member.failed, 1);
        if (lock instanceof Error) assert.equal(lock.code, 'ERR_LOCK_STORE');
        // An own try finds nobody else: what it asked for is its own, or free.
        else assert.equal(lock?.unlock(), true);
        const next = await open(server.url).acquireAsync('job', { timeout: 5000 });
        assert.equal(next.unlock(), true);
      });
    }
  }

  for (const mode of ['exclusive', 'shared']) {
    test(`permission denied: a wait in line, ${mode}, ends with it`, SETTINGS, async (t) => {
      const { member, server, open } = await startBoth(t);
      const [manager, other] = [open(member.url), open(server.url)];
      const held = await other.acquireAsync('job');
      const waits = manager.acquireAsync('job', { mode, timeout: 20_000 });
      while (member.answered === 0) await sleep(5);
      member.next = [false, 403, { code: 7, error: 'etcdserver: permission denied' }];
      assert.equal(held.unlock(), true);
      await assert.rejects(waits, { code: 'ERR_LOCK_STORE', message: /permission denied/ });
      const next = await other.acquireAsync('job', { timeout: 5000 });
      assert.equal(next.unlock(), true);
    });
  }
});
