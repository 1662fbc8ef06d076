// Locks names in every way, and writes what happens: `W` before it asks, `B` as soon as it is in, `C` once it has marked the
// lock as consistent, `E` before it unlocks, `D` when it got nothing.

const { setTimeout: sleep } = require('node:timers/promises');
const { LockManager } = require('../..');
const { createLog } = require('./log.js');
const { createRandom } = require('./random.js');

/** How long holds take, how many share, how many of them for long, and how long one waits to hold a name alone. */
const KINDS = {
  crowd: { holdMs: 6, shared: 0.25, long: 0, longMs: 0, aloneMs: Infinity },
  readers: { holdMs: 6, shared: 0.7, long: 0.1, longMs: 8000, aloneMs: 300 },
};
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
      const who = `${this.#holder}.${this.#serial++} n${this.#random.below(this.#names)}`;
      const mode = this.#random.next() < this.#kind.shared ? 'shared' : 'exclusive';
      this.write(`W ${who} ${mode} - ${Date.now()}`);
      const isIn =
        this.#mayBlock && this.#random.next() < 0.3 ? this.#block(who, mode) : await this.#request(who, mode);
      if (!isIn) this.write(`D ${who} ${mode} - ${Date.now()}`);
      // The loop turns in any case.
      await sleep(this.#random.below(3));
    }
  }

  async #request(who, mode) {
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
      return await this.#manager.request(nameIn(who), options, async (lock) => {
        if (lock === null) return false;
        this.#begin(who, lock);
        await sleep(this.#holdMs(mode));
        this.#end(who, lock);
        return true;
      });
    } catch (error) {
      return expected(error);
    }
  }

  #block(who, mode) {
    const longest = mode === 'exclusive' ? this.#kind.aloneMs : Infinity;
    const timeout = this.#random.next() < 0.3 ? this.#random.below(20) : longest;
    try {
      return this.#manager.requestSync(nameIn(who), { mode, timeout }, (lock) => {
        this.#begin(who, lock);
        Atomics.wait(pauser, 0, 0, this.#random.below(this.#kind.holdMs));
        this.#end(who, lock);
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

  #begin(who, { mode, abandoned }) {
    this.write(`B ${who} ${mode} ${abandoned ? 'abandoned' : '-'} ${Date.now()}`);
  }

  #end(who, lock) {
    if (lock.abandoned && lock.mode === 'exclusive' && this.#random.next() < 0.5) {
      lock.markConsistent();
      this.write(`C ${who} ${lock.mode} - ${Date.now()}`);
    }
    this.write(`E ${who} ${lock.mode} - ${Date.now()}`);
  }
}

const nameIn = (who) => who.split(' ')[1];

/**
 * False for what ends a request without the lock; throws all else. A thread that blocks for what its own tasks hold learns it
 * of the deadlock.
 */
function expected(error) {
  if (['ERR_LOCK_TIMEOUT', 'ERR_LOCK_DEADLOCK'].includes(error.code) || error.name === 'AbortError') return false;
  throw error;
}

exports.Locker = Locker;
