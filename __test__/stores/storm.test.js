// Processes that take the same locks while they are killed and stopped, and their connections are cut. The witness is a register
// that refuses a fence below the last one: whoever is refused has to have learned that its lock was lost.

const assert = require('node:assert/strict');
const { fork } = require('node:child_process');
const { once } = require('node:events');
const net = require('node:net');
const path = require('node:path');
const { test } = require('node:test');
const { LockManager } = require('../..');
const { etcd } = require('../../lib/stores/etcd.js');
const { mysql } = require('../../lib/stores/mysql.js');
const { postgres } = require('../../lib/stores/postgres.js');
const { redis } = require('../../lib/stores/redis.js');
const { startProxy } = require('../helpers/proxy.js');
const { signal } = require('../helpers/store-processes.js');
const { createWeather } = require('../helpers/weather.js');
const { createRandom } = require('../../tests/torture/processes/random.js');
const { KINDS, LIMIT } = require('../../tests/torture/stores/kinds.js');
const { now, Register: TortureRegister } = require('../../tests/torture/stores/register.js');

/** `npm run test:stores` takes longer. */
const SECONDS = Number(process.env.SABLOCK_STORE_SECONDS ?? 2);
const PROCESSES = 3;
/** It goes on until so much was done. */
const LEAST_HELD = 50;
const LEAST_WRITTEN = 100;

/** The stores: how each is opened, and which of what an administrator may do cuts connections, or ends what was granted. */
const STORES = {
  mysql: { open: mysql, cut: KINDS.mysql.take.KILL },
  postgres: { open: postgres, cut: KINDS.postgres.take.pg_terminate_backend },
  redis: { open: redis, cut: KINDS.redis.take['CLIENT KILL'] },
  etcd: { open: etcd, cut: KINDS.etcd.take['lease revoke'] },
};
const random = { next: Math.random };

/** That of the long run, reported by the children of this one. */
class Register extends TortureRegister {
  take(child, { kind, id, name, fence, message }) {
    if (kind === 'write') {
      const isTaken = this.write({ name, fence, holder: child.pid });
      if (child.connected) child.send({ id, isTaken }, () => {});
    } else if (kind === 'held' || kind === 'told') {
      this.note(kind);
      child.hasHeld = true;
    } else {
      this.violations.push(`${kind} ${name} ${fence} ${message}`);
    }
  }
}

for (const [kind, { open, cut }] of Object.entries(STORES)) {
  const { isThere, settings, start } = KINDS[kind];
  const options = {
    skip: isThere ? false : `the server of ${kind} is not installed`,
    timeout: SECONDS * 1000 + 60_000,
  };
  test(
    `${kind}: processes are killed and stopped, and connections cut: no fence is passed untold, nobody waits for ever`,
    options,
    async (t) => {
      const server = await start();
      t.after(() => server.stop());
      const register = new Register();
      const { NODE_TEST_CONTEXT, ...env } = process.env;
      const program = path.join(__dirname, '..', 'programs', 'store-storm.js');
      const children = new Set();
      const add = () => {
        const child = fork(program, [kind, server.url, JSON.stringify(settings), String(2 * LIMIT)], { env });
        child.on('message', (message) => register.take(child, message));
        child.once('exit', () => children.delete(child));
        children.add(child);
      };
      const endAll = async () => {
        const ended = Array.from(children, (child) => new Promise((resolve) => child.once('exit', resolve)));
        for (const child of children) signal(child, 'SIGKILL');
        await Promise.all(ended);
      };
      t.after(endAll);
      const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
      const end = performance.now() + SECONDS * 1000;
      // On a busy machine it takes longer: those that have not begun are let be.
      while (
        performance.now() < end ||
        register.counts.held <= LEAST_HELD ||
        register.counts.written <= LEAST_WRITTEN
      ) {
        while (children.size < PROCESSES) add();
        await pause(200 + Math.random() * 400);
        const victims = Array.from(children).filter(({ hasHeld }) => hasHeld);
        if (victims.length === 0) continue;
        const victim = victims[Math.floor(Math.random() * victims.length)];
        const dice = Math.random();
        if (dice < 0.3) {
          signal(victim, 'SIGKILL');
        } else if (dice < 0.7) {
          signal(victim, 'SIGSTOP');
          setTimeout(() => signal(victim, 'SIGCONT'), Math.random() * 2 * LIMIT);
          // A holder that goes on with what it has lost in its sleep is refused.
          if (dice < 0.5) await cut(server, random);
        } else {
          await cut(server, random);
        }
      }
      // The processes that were stopped go on and look. Meanwhile locks change hands still, though not as often as they can.
      for (const child of children) if (child.connected) child.send({ isOver: true }, () => {});
      await pause(4.5 * LIMIT);
      await endAll();
      const manager = new LockManager({ store: open(server.url, settings) });
      t.after(() => manager.close());
      for (let index = 0; index < 3; index += 1) {
        await manager.request(`storm ${index}`, { timeout: 6 * LIMIT }, (lock) => {
          if (lock.abandoned) lock.markConsistent();
        });
      }
      t.diagnostic(JSON.stringify(register.counts));
      assert.deepEqual(register.violations, []);
    },
  );
}

test('the register refuses what is old', () => {
  const register = new Register();
  const child = { connected: false };
  for (const fence of ['5', '7', '6']) register.take(child, { kind: 'write', id: 1, name: 'a', fence });
  assert.deepEqual(register.counts, { written: 2, refused: 1, told: 0, held: 0 });
  register.take(child, { kind: 'untold', name: 'a', fence: '6' });
  assert.equal(register.violations.length, 1);
});

test('the register of the long run refuses what is old, a fence that two have, and one that is too small', () => {
  const register = new TortureRegister();
  const write = (fence, holder, isShared) => register.write({ name: 'a', fence, holder, isShared });
  assert.deepEqual(
    [write('5', 'one'), write('5', 'one'), write('6', 'reader', true), write('7', 'two'), write('5', 'one')],
    [true, true, true, true, false],
  );
  assert.deepEqual(register.violations, []);
  write('7', 'three');
  assert.equal(register.violations.length, 1);
  const asked = (at) => register.write({ name: 'a', fence: '6', holder: 'late', asked: at });
  assert.deepEqual([asked(0), register.violations.length], [false, 1]);
  assert.deepEqual([asked(now()), register.violations.length], [false, 2]);
});

test('the proxy keeps the order of what is sent, when its delay becomes shorter too', {
  timeout: 60_000,
}, async (t) => {
  const echo = net.createServer((socket) => socket.pipe(socket));
  echo.listen(0, '127.0.0.1');
  await once(echo, 'listening');
  t.after(() => echo.close());
  const proxy = await startProxy(t, `tcp://127.0.0.1:${echo.address().port}`);
  const { hostname, port } = new URL(proxy.url);
  const client = net.connect(Number(port), hostname);
  client.setNoDelay(true);
  let heard = '';
  client.setEncoding('utf8').on('data', (data) => {
    heard += data;
  });
  let sent = '';
  for (const delay of [200, 100, 0]) {
    proxy.delay = delay;
    const { taken } = proxy;
    client.write(String(delay));
    sent += delay;
    while (proxy.taken === taken) await new Promise(setImmediate);
  }
  while (heard.length < sent.length) await once(client, 'data');
  assert.equal(heard, sent);
});

test('in bad weather what is sent comes whole, and each kind of trouble comes about', () => {
  const pushes = {
    redis: '*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nbc\r\n',
    etcd: '2e\r\n{"result":{"events":[{"type":"DELETE"}]}}\n\r\n',
  };
  for (const [kind, push] of Object.entries(pushes)) {
    const weather = createWeather(kind, createRandom(7), { closes: 0.01 });
    const line = {};
    for (let index = 0; index < 1000; index += 1) {
      const answer = Buffer.from(`answer ${index}`);
      for (const toServer of [true, false]) {
        const pieces = weather(line, toServer, answer);
        assert.equal(Buffer.concat(pieces.map(({ data }) => data)).toString(), `answer ${index}`);
      }
      // Data from a client is no push.
      assert.ok(weather(line, true, Buffer.from(push)).length > 0);
      weather(line, false, Buffer.from(push));
    }
    for (const [trouble, times] of Object.entries(weather.seen)) assert.ok(times > 0, `${kind}: never ${trouble}`);
  }
});
