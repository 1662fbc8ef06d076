// Locks names in every way, one or several at once, and writes what happens to each: `W` before it asks, `B` as soon as it is
// in, `C` once it has marked the lock as consistent, `E` before it unlocks, `D` when it got nothing.

const { setTimeout: sleep } = require('node:timers/promises');
const { LockManager } = require('../../..');
const { createLog } = require('./log.js');
const { createRandom } = require('./random.js');

/** The share of requests that are of several names. */
const SEVERAL = 0.25;
/**
 * The kinds of lockers: how long holds take, how many share, how many of them for long, and how long one waits to hold a name
 * alone.
 */
const KINDS = {
  crowd: { holdMs: 6, shared: 0.25, long: 0, longMs: 0, aloneMs: Infinity },
  readers: { holdMs: 6, shared: 0.7, long: 0.1, longMs: 8000, aloneMs: 300 },
};
/**
 * The time for which a thread blocks while another task of it has asked for something, which it may be given, and cannot release,
 * meanwhile: two threads of two processes would wait for each other, and no process knows what the threads of others wait for.
 */
const BESIDE_MS = 300;
const pauser = new Int32Array(new SharedArrayBuffer(4));

class Locker {
  #log;
  #manager;
  #random;
  #holder;
  #names;
  #mayBlock;
  #kind;
  #isOver = false;
  #tasks = [];
  #asking = 0;
  #serial = 0;

  constructor({ directory, logs, names, holder, seed, kind, mayBlock = false }) {
    this.#log = createLog(logs, holder);
    this.#manager = new LockManager({ directory });
    this.#random = createRandom(seed);
    this.#holder = holder;
    this.#names = names;
    this.#mayBlock = mayBlock;
    this.#kind = KINDS[kind];
  }

  write(line) {
    this.#log.write(line);
  }

  run(count) {
    this.#tasks = Array.from({ length: count }, () => this.#loop());
  }

  async finish() {
    this.#isOver = true;
    await Promise.all(this.#tasks);
  }

  async #loop() {
    while (!this.#isOver) {
      const names = this.#choose();
      const mode = this.#random.next() < this.#kind.shared ? 'shared' : 'exclusive';
      const whos = names.map((name) => `${this.#holder}.${this.#serial++} ${name}`);
      this.#writeAll(whos, 'W', `${mode} ${names.length > 1 ? 'several' : '-'}`);
      const request = { whos, mode, names: names.length > 1 ? names : names[0] };
      this.#asking += 1;
      const isIn = this.#mayBlock && this.#random.next() < 0.3 ? this.#block(request) : await this.#request(request);
      this.#asking -= 1;
      if (!isIn) this.#writeAll(whos, 'D', `${mode} -`);
      // The loop turns in any case.
      await sleep(this.#random.below(3));
    }
  }

  /** One name, or several of them in any order. */
  #choose() {
    const names = [`n${this.#random.below(this.#names)}`];
    while (this.#random.next() < SEVERAL) names.push(`n${this.#random.below(this.#names)}`);
    return [...new Set(names)];
  }

  #writeAll(whos, what, rest) {
    for (const who of whos) this.write(`${what} ${who} ${rest} ${Date.now()}`);
  }

  async #request({ whos, mode, names }) {
    const options = { mode };
    const chance = this.#random.next();
    if (chance < 0.1) {
      options.ifAvailable = true;
    } else if (chance < 0.25) {
      options.timeout = this.#random.below(20);
    } else if (mode === 'exclusive' && this.#kind.aloneMs !== Infinity) {
      options.timeout = this.#kind.aloneMs;
    } else if (chance < 0.35) {
      const controller = new AbortController();
      options.signal = controller.signal;
      setTimeout(() => controller.abort(), this.#random.below(20)).unref();
    }
    try {
      return await this.#manager.request(names, options, async (held) => {
        if (held === null) return false;
        this.#begin(whos, held);
        await sleep(this.#holdMs(mode));
        this.#end(whos, held);
        return true;
      });
    } catch (error) {
      return expected(error);
    }
  }

  #block({ whos, mode, names }) {
    const longest = mode === 'exclusive' ? this.#kind.aloneMs : Infinity;
    const most = this.#asking > 1 ? Math.min(longest, BESIDE_MS) : longest;
    const timeout = this.#random.next() < 0.3 ? this.#random.below(20) : most;
    try {
      return this.#manager.requestSync(names, { mode, timeout }, (held) => {
        this.#begin(whos, held);
        Atomics.wait(pauser, 0, 0, this.#random.below(this.#kind.holdMs));
        this.#end(whos, held);
        return true;
      });
    } catch (error) {
      return expected(error);
    }
  }

  #holdMs(mode) {
    const isLong = mode === 'shared' && !this.#isOver && this.#random.next() < this.#kind.long;
    return this.#random.below(isLong ? this.#kind.longMs : this.#kind.holdMs);
  }

  #begin(whos, held) {
    for (const [who, { mode, abandoned }] of pairs(whos, held)) {
      this.write(`B ${who} ${mode} ${abandoned ? 'abandoned' : '-'} ${Date.now()}`);
    }
  }

  #end(whos, held) {
    for (const [who, lock] of pairs(whos, held)) {
      if (lock.abandoned && lock.mode === 'exclusive' && this.#random.next() < 0.5) {
        lock.markConsistent();
        this.write(`C ${who} ${lock.mode} - ${Date.now()}`);
      }
      this.write(`E ${who} ${lock.mode} - ${Date.now()}`);
    }
  }
}

/** Each with its lock: those of several names are in the order of the names. */
function pairs(whos, held) {
  return [held].flat().map((lock, index) => {
    if (!whos[index].endsWith(` ${lock.name}`)) throw new Error(`${lock.name} in the place of ${whos[index]}`);
    return [whos[index], lock];
  });
}

/**
 * False for what ends a request without the lock; throws all else. A thread that blocks for what its own tasks hold learns it
 * of the deadlock.
 */
function expected(error) {
  if (['ERR_LOCK_TIMEOUT', 'ERR_LOCK_DEADLOCK'].includes(error.code) || error.name === 'AbortError') return false;
  throw error;
}

exports.Locker = Locker;
