// Three processes that stand for three machines have a nightly job, while holders are stopped, cables cut and the server restarted.
// The witness is a register that refuses a fence below the last one it has seen: each night is written once, and whoever is refused
// has learned of the loss.

const assert = require('node:assert/strict');
const { describe, test } = require('node:test');
const { serveHttp } = require('../helpers/http.js');
const { startProxy } = require('../helpers/proxy.js');
const { hasPostgres, hasRedis, startPostgres, startRedis } = require('../helpers/servers.js');
const { startMachine } = require('../helpers/store-processes.js');
const { seen } = require('../helpers/stores.js');

const MACHINES = 3;
/** After so long an untold holder may have lost its lock, in milliseconds. */
const LIMIT = 900;
/** Of nights in which nothing is to break: a machine that stands still for longer than the other is one that is stopped. */
const CALM = 60_000;

const KINDS = {
  redis: {
    isThere: hasRedis,
    start: startRedis,
    settings: { lease: LIMIT },
    calm: { lease: CALM },
    freesAtLimit: true,
  },
  // A server keeps the session of a client that is stopped, or behind a proxy that stands for a cable: its kernel answers.
  postgres: {
    isThere: hasPostgres,
    start: startPostgres,
    settings: { heartbeat: LIMIT / 3 },
    calm: { heartbeat: CALM / 3 },
    freesAtLimit: false,
  },
};

class Register {
  #fence = 0n;
  #owners = new Map();
  /** `{ verb, night, machine, at }` of what was asked, and `refused` for what was refused, in order. */
  events = [];
  /** The writers of the nights. */
  nights = new Map();
  violations = [];

  /** Answers what a machine asks: whether there is work to do, or whether what it has done is taken. */
  take({ verb, night, machine, fence, at = 0 }) {
    this.events.push({ verb, night, machine, at });
    if (verb === 'told') return true;
    const number = BigInt(fence);
    const owner = `${machine} in night ${night}`;
    if (number < this.#fence) {
      this.events.push({ verb: 'refused', night, machine, at });
      return false;
    }
    this.#fence = number;
    if (verb === 'begin') {
      if (this.#owners.has(fence)) this.violations.push(`${owner} has the fence of ${this.#owners.get(fence)}`);
      this.#owners.set(fence, owner);
      return !this.nights.has(night);
    }
    if (this.nights.has(night)) this.violations.push(`${owner}: written already by ${this.nights.get(night)}`);
    this.nights.set(night, machine);
    return true;
  }

  /** The first such event of this night. */
  find(verb, night, isIts = () => true) {
    return this.events.find((event) => event.verb === verb && event.night === night && isIts(event.machine));
  }
}

/** Serves the register; `work.begun(machine)` is awaited before the first that has work to do is told so. */
async function serve(t, register, work) {
  const answer = async (asked) => {
    const result = register.take(asked);
    const isFirst = asked.verb === 'begin' && result && work.begun !== null;
    if (!isFirst) return result;
    const { begun } = work;
    work.begun = null;
    await begun(asked.machine);
    return result;
  };
  return serveHttp(t, async (request, response) => {
    let text = '';
    for await (const piece of request) text += piece;
    response.end(JSON.stringify(await answer(JSON.parse(text))));
  });
}

/** Runs in a machine: takes part in a night until that is done. Their clock is one, since the machine is. */
async function takePart(here, url, machine, night, isCalm) {
  const clock = () => Number(process.hrtime.bigint()) / 1e6;
  const ask = async (verb, fence, at = clock()) => {
    const body = JSON.stringify({ verb, night, machine, fence: String(fence), at });
    return (await fetch(url, { method: 'POST', body })).json();
  };
  const job = async (lock) => {
    const lost = new Promise((resolve) => lock.signal.addEventListener('abort', () => resolve(clock())));
    const told = lost.then((at) => ask('told', lock.fence, at));
    if (!(await ask('begin', lock.fence))) return true;
    // It does not look whether it still has the lock.
    if (await ask('write', lock.fence)) return true;
    // Somebody newer was there: then this has lost it, and learns of it.
    await told;
    return false;
  };
  for (;;) {
    try {
      const manager = isCalm ? here.calm : here.manager;
      if (await manager.request('nightly job', { fence: true }, job)) return;
    } catch (error) {
      if (error.code !== 'ERR_LOCK_LOST' && error.code !== 'ERR_LOCK_STORE') throw error;
    }
  }
}

const openThere = (machine, kind, url, settings, calm) =>
  machine.do(
    (here, name, at, ...all) => {
      const open = (each) => new here.sablock.LockManager({ store: here.open(name, at, each) });
      [here.manager, here.calm] = all.map(open);
    },
    kind,
    url,
    settings,
    calm,
  );

// They wait more than they work.
describe('a nightly job of three machines', { concurrency: true }, () => {
  for (const [kind, { isThere, start, settings, calm, freesAtLimit }] of Object.entries(KINDS)) {
    const options = { skip: isThere ? false : `the server of ${kind} is not installed`, timeout: 120_000 };
    test(`${kind}: it is done once a night, whatever breaks`, options, async (t) => {
      const server = await start();
      t.after(() => server.stop());
      const register = new Register();
      const work = { begun: null };
      const url = await serve(t, register, work);
      const machines = [];
      const cables = [];
      for (let machine = 0; machine < MACHINES; machine += 1) {
        cables.push(await startProxy(t, server.url));
        machines.push(await startMachine(t));
        await openThere(machines[machine], kind, cables[machine].url, settings, calm);
      }

      let night = 0;
      const isDone = () => register.nights.has(night);
      /** The first to begin breaks so, and gets to its result when another has written its own. */
      const faults = {
        async stopped(holder) {
          machines[holder].signal('SIGSTOP');
          const end = performance.now() + 2 * LIMIT;
          await seen(() => (freesAtLimit ? isDone() : performance.now() > end));
          machines[holder].signal('SIGCONT');
        },
        async cut(holder) {
          cables[holder].cut();
          await seen(() => register.find('told', night) !== undefined);
          if (freesAtLimit) await seen(isDone);
          cables[holder].heal();
        },
        async restarted() {
          await server.kill();
          await server.start();
        },
      };
      const pass = async (fault) => {
        night += 1;
        let holder = null;
        work.begun = async (machine) => {
          holder = machine;
          if (fault === null) return;
          await faults[fault](machine);
          await seen(isDone);
        };
        await Promise.all(machines.map((machine, index) => machine.do(takePart, url, index, night, fault === null)));
        return holder;
      };

      for (const fault of [null, 'stopped', 'cut', 'restarted', null]) {
        const holder = await pass(fault);
        const isOther = (machine) => machine !== holder;
        if (fault === null) {
          assert.equal(register.nights.get(night), holder);
          assert.equal(register.find('refused', night), undefined);
          for (const machine of machines.keys()) assert.ok(register.find('begin', night, (own) => own === machine));
          continue;
        }
        const isIts = (machine) => machine === holder;
        const told = register.find('told', night, isIts);
        assert.ok(
          told && register.find('refused', night, isIts),
          `${fault}: the holder was refused, and learned of its loss`,
        );
        assert.notEqual(register.nights.get(night), holder);
        // A process that is stopped cannot learn of it; a Redis that restarts has forgotten whom it should tell.
        if (fault === 'stopped' || (fault === 'restarted' && kind === 'redis')) continue;
        const next = register.find('begin', night, isOther);
        assert.ok(
          told.at < next.at,
          `${fault}: another began ${told.at - next.at} ms before the holder learned of its loss`,
        );
      }
      assert.deepEqual(register.violations, []);
      assert.equal(register.nights.size, night);
      t.diagnostic(`${night} nights, ${register.events.filter(({ verb }) => verb === 'refused').length} refused`);
    });
  }
});

test('the register refuses what is old, and notes what is written twice', () => {
  const register = new Register();
  const ask = (verb, machine, fence, night = 1) => register.take({ verb, night, machine, fence });
  assert.equal(ask('begin', 0, '5'), true);
  assert.equal(ask('begin', 1, '7'), true);
  assert.equal(ask('write', 0, '5'), false);
  assert.equal(ask('write', 1, '7'), true);
  assert.equal(ask('begin', 2, '8'), false);
  assert.deepEqual(register.violations, []);
  ask('write', 2, '8');
  ask('begin', 0, '8', 2);
  assert.equal(register.violations.length, 2);
});
