// Processes and their threads take the locks of a store in every way there is, while they are killed and stopped, their threads and
// lock workers end, cables are cut, and the server is killed, stopped, restarted, and made to take locks away. The witness is a
// register that refuses fences below the last one (stores/register.js): whoever is refused has to learn that its lock was lost.
// When the storm is over, nobody waits, and the server knows of no request.
//
// `redis-clock` is a Redis whose clock is stepped, by a key that its script reads. `redis-delays` and its like look for delays instead
// (stores/delays.js): no lease ends, and nobody is killed or stopped.
//
//     npm run torture:stores -- [--seconds 600] [--store redis] [--seed 7] [--processes 4] [--names 3]
//
// The seconds are those of each store. What is not installed is left out, and named.

const { fork } = require('node:child_process');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { parseArgs } = require('node:util');
const { LockManager } = require('../..');
const { startProxy } = require('../../__test__/helpers/proxy.js');
const { signal } = require('../../__test__/helpers/store-processes.js');
const { createWeather } = require('../../__test__/helpers/weather.js');
const { createRandom } = require('./processes/random.js');
const { Delays } = require('./stores/delays.js');
const { KINDS, LIMIT } = require('./stores/kinds.js');
const { Register } = require('./stores/register.js');
// For the look at the remains: it sees the clock that the processes saw.
require('./stores/server-clock.js');

const DEFAULTS = { seconds: 600, seed: 1, processes: 4, names: 3 };
/** The time for which nobody may have got on, or not have finished. */
const PATIENCE_MS = 60_000;
const PROXIES = 3;
/** The share of the pieces of data that pass the proxy in bad weather that close their connection. */
const CLOSES = 0.002;
/** It goes on until so much was held: on a busy machine that takes longer. */
const LEAST_HELD = 50;

function readOptions(args) {
  const options = { store: { type: 'string', multiple: true, default: Object.keys(KINDS) } };
  for (const name in DEFAULTS) options[name] = { type: 'string', default: String(DEFAULTS[name]) };
  const { values } = parseArgs({ args, options });
  for (const name of values.store) {
    if (!Object.hasOwn(KINDS, name)) throw new RangeError(`--store must be one of ${Object.keys(KINDS).join(', ')}`);
  }
  for (const name in DEFAULTS) {
    values[name] = Number(values[name]);
    if (!(values[name] >= 1)) throw new RangeError(`--${name} must be a number, 1 or more`);
  }
  return values;
}

/** The faults that some do at random: how often, of a hundred. */
const FAULTS = { kill: 12, stop: 26, cut: 16, slow: 6, take: 24, stopServer: 6, restartServer: 10 };
/** The faults after which what was held goes on, or ends at once. */
const FAULTS_OF_DELAYS = { pull: 24, cut: 24, slow: 10, take: 24, stopServer: 18 };

class Storm {
  #kind;
  #options;
  #random;
  #server;
  #proxies = [];
  #weather;
  #ends = [];
  #children = new Set();
  #next = 0;
  #register = new Register();
  #delays = new Delays();
  #done = {};
  #busy = new Set();
  #progress = { held: 0, at: performance.now() };

  constructor(kind, options) {
    this.#kind = kind;
    this.#options = options;
    this.#random = createRandom(options.seed);
  }

  get #spec() {
    return KINDS[this.#kind];
  }

  async run() {
    this.#server = await this.#spec.start();
    try {
      const t = { after: (end) => this.#ends.push(end) };
      for (let index = 0; index < PROXIES; index += 1) this.#proxies.push(await startProxy(t, this.#server.url));
      const { store, watchesDelays } = this.#spec;
      const random = createRandom(this.#random.below(2 ** 31));
      const weather = createWeather(store, random, { closes: CLOSES, losesPushes: !watchesDelays });
      this.#proxies[0].weather = weather;
      this.#weather = weather.seen;
      await this.#rage();
      await Promise.all(this.#busy);
      // Some hold and wait at the very end, and come to none of their own.
      const killed = this.#spec.watchesDelays ? 0 : 0.5;
      for (const child of this.#children) if (this.#random.next() < killed) signal(child, 'SIGKILL');
      await this.#spec.atLast?.(this.#server);
      await this.#finish();
      await this.#lookAtRemains();
    } finally {
      for (const child of this.#children) signal(child, 'SIGKILL');
      for (const end of this.#ends) end();
      await this.#server.stop();
    }
    const { counts, violations } = this.#register;
    const faults = Object.values(this.#done).reduce((sum, count) => sum + count, 0);
    const { lost, twice, split, closed, behind } = this.#weather;
    const weather = {
      'pushes lost': lost,
      'pushes twice': twice,
      'pieces split': split,
      'halves closed': closed,
      'answers behind': behind,
    };
    const delays = this.#spec.watchesDelays ? { 'longest delay, ms': Math.round(this.#delays.longest) } : {};
    return {
      counts: { processes: this.#next, faults, ...this.#done, ...weather, ...counts, ...delays },
      violations: [...violations, ...this.#delays.violations],
    };
  }

  async #rage() {
    const until = performance.now() + this.#options.seconds * 1000;
    while (performance.now() < until || this.#register.counts.held < LEAST_HELD) {
      while (this.#children.size < this.#options.processes) this.#start();
      await sleep(100 + this.#random.below(500));
      this.#disturb();
      this.#delays.look();
      const { held } = this.#register.counts;
      if (held > this.#progress.held) this.#progress = { held, at: performance.now() };
      if (performance.now() - this.#progress.at > PATIENCE_MS) {
        this.#wrong(`nobody held anything for ${PATIENCE_MS} ms`);
        return;
      }
    }
  }

  #start() {
    const { names } = this.#options;
    const way = this.#random.next();
    const url = way < 0.6 ? this.#random.pick(this.#proxies).url : this.#server.url;
    const isEnding = way > 0.8 && this.#spec.hasEndingClient !== false;
    const connection = isEnding ? { module: path.join(__dirname, 'stores', 'ending-client.js') } : url;
    const holder = this.#next++;
    const settings = { ...this.#spec.settings };
    // Some renew seldom, and some often.
    if (settings.lease !== undefined && !this.#spec.watchesDelays)
      settings.renew = settings.lease / this.#random.pick([2, 3, 20]);
    const { store: kind, canShare = true, watchesDelays = false } = this.#spec;
    const options = { kind, canShare, watchesDelays, connection, settings, names, holder };
    const args = [JSON.stringify({ ...options, seed: this.#random.below(2 ** 31) })];
    const env = { ...process.env, SABLOCK_TORTURE_KIND: this.#spec.store, SABLOCK_TORTURE_URL: url };
    const preload = this.#spec.preload === undefined ? [] : ['--require', this.#spec.preload];
    const execArgv = ['--no-warnings', ...preload];
    const child = fork(path.join(__dirname, 'stores', 'child.js'), args, { execArgv, env });
    child.holder = holder;
    child.ended = new Promise((resolve) => {
      child.once('exit', (code, ending) => {
        this.#children.delete(child);
        if (ending !== 'SIGKILL' && code !== 0) this.#wrong(`process ${holder} ended with ${code ?? ending}`);
        resolve();
      });
    });
    child.on('message', (message) => this.#hear(child, message));
    this.#children.add(child);
  }

  #hear(child, { kind, id, entry, message }) {
    if (kind === 'write') {
      const isTaken = this.#register.write(entry);
      if (child.connected) child.send({ id, isTaken }, () => {});
    } else if (kind === 'wrong') this.#wrong(message);
    else if (kind === 'terminated') this.#count('threads terminated');
    else if (/^(?:waits|holds)/.test(kind)) this.#delays.note(kind, message);
    else {
      child.hasBegun = true;
      this.#register.note(kind);
    }
  }

  #wrong(message) {
    this.#register.violations.push(message);
  }

  #disturb() {
    let chance = this.#random.below(100);
    const faults = this.#spec.watchesDelays ? FAULTS_OF_DELAYS : FAULTS;
    const fault = Object.keys(faults).find((name) => {
      chance -= faults[name];
      return chance < 0;
    });
    const acting = this.#act(fault).catch(() => {
      // The server is away.
    });
    this.#busy.add(acting);
    acting.then(() => this.#busy.delete(acting));
  }

  #count(what) {
    this.#done[what] = (this.#done[what] ?? 0) + 1;
  }

  async #act(fault) {
    // Processes that have not begun are let be: on a busy machine nobody else would ever hold anything.
    const child = this.#random.pick([...this.#children].filter(({ hasBegun }) => hasBegun));
    if (child === undefined) return;
    const proxy = this.#random.pick(this.#proxies);
    const ms = this.#random.below(2 * LIMIT);
    switch (fault) {
      case 'kill':
        signal(child, 'SIGKILL');
        return this.#count('kills');
      case 'stop':
        signal(child, 'SIGSTOP');
        this.#count('stops');
        await sleep(ms);
        return signal(child, 'SIGCONT');
      case 'pull':
        this.#count('cables pulled');
        return proxy.drop();
      case 'cut':
        proxy.cut();
        this.#count('cables cut');
        await sleep(ms);
        return proxy.heal();
      case 'slow':
        proxy.delay = this.#random.below(LIMIT / 10);
        this.#count('slow lines');
        await sleep(ms);
        proxy.delay = 0;
        return;
      case 'take': {
        const name = this.#random.pick(Object.keys(this.#spec.take));
        await this.#spec.take[name](this.#server, this.#random);
        return this.#count(name);
      }
      default:
        return this.#disturbServer(fault, ms);
    }
  }

  /** One after the other. */
  #disturbServer(fault, ms) {
    if (this.#isDisturbed) return Promise.resolve();
    this.#isDisturbed = true;
    const disturb = fault === 'restartServer' ? () => this.#restart(ms) : () => this.#stopServer(ms);
    return disturb().finally(() => {
      this.#isDisturbed = false;
    });
  }
  #isDisturbed = false;

  async #restart(ms) {
    this.#count('servers killed');
    await this.#server.kill();
    await sleep(ms / 2);
    await this.#server.start();
  }

  async #stopServer(ms) {
    // PostgreSQL is many processes.
    if (this.#server.pid === undefined) return;
    this.#count('servers stopped');
    const { pid } = this.#server;
    signal({ pid }, 'SIGSTOP');
    await sleep(ms);
    signal({ pid }, 'SIGCONT');
  }

  /** All end what they have begun. */
  async #finish() {
    for (const child of this.#children) if (child.connected) child.send('finish', () => {});
    const ends = Promise.all(Array.from(this.#children, (child) => child.ended));
    await Promise.race([ends, sleep(PATIENCE_MS, undefined, { ref: false })]);
    for (const child of this.#children) {
      this.#wrong(`process ${child.holder} waits for ever`);
      child.send('describe', () => {});
    }
    // The processes' words stand below.
    if (this.#children.size > 0) await sleep(LIMIT);
  }

  async #lookAtRemains() {
    const { store: kind, settings } = this.#spec;
    const store = require(`../../lib/stores/${kind}.js`)[kind](this.#server.url, settings);
    const manager = new LockManager({ store });
    for (let index = 0; index < this.#options.names; index += 1) {
      const name = `torture ${index}`;
      await manager
        .request(name, { timeout: 10 * LIMIT }, (lock) => lock.abandoned && lock.markConsistent())
        .catch((error) => this.#wrong(`after all is over, nobody gets ${name}: ${error.message}`));
    }
    await manager.close();
    let left;
    for (const until = performance.now() + 10 * LIMIT; performance.now() < until; ) {
      left = await this.#spec.left(this.#server);
      if (left === 0) return;
      await sleep(100);
    }
    this.#wrong(`the server knows ${left} requests when all is over`);
  }
}

async function main() {
  const options = readOptions(process.argv.slice(2));
  let isWrong = false;
  const leftOut = [];
  for (const kind of options.store) {
    if (!KINDS[kind].isThere) {
      leftOut.push(kind);
      continue;
    }
    const { counts, violations } = await new Storm(kind, options).run();
    console.log(`${kind}, seed ${options.seed}, ${options.seconds} s, Node.js ${process.version}`);
    for (const [what, count] of Object.entries(counts)) console.log(`  ${what.padEnd(22)} ${count}`);
    for (const violation of violations.slice(0, 10)) console.log(`VIOLATION ${violation}`);
    console.log(violations.length === 0 ? '  Nothing wrong was found.' : `  ${violations.length} violations`);
    isWrong ||= violations.length > 0;
  }
  if (leftOut.length > 0) console.log(`Left out, since the server is not installed: ${leftOut.join(', ')}.`);
  process.exitCode = isWrong ? 1 : 0;
}

main();
