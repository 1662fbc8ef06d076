// Locks names in every way, and writes what happens: `W` before it asks, `B` as soon as it is in, `C` once it has marked the
// lock as consistent, `E` before it unlocks, `D` when it got nothing.

const fs = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');
const { LockManager } = require('../..');
const { createRandom } = require('./random.js');

const LONGEST_HOLD_MS = 6;
const pauser = new Int32Array(new SharedArrayBuffer(4));

class Locker {
  #file;
  #manager;
  #random;
  #holder;
  #names;
  #mayBlock;
  #isOver = false;
  #tasks = [];
  #serial = 0;

  constructor({ directory, log, names, holder, seed, mayBlock = false }) {
    this.#file = fs.openSync(log, 'a');
    this.#manager = new LockManager({ directory });
    this.#random = createRandom(seed);
    this.#holder = holder;
    this.#names = names;
    this.#mayBlock = mayBlock;
  }

  /** One call of the system: lines of different writers do not mix. */
  write(line) {
    fs.writeSync(this.#file, `${line}\n`);
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
      const mode = this.#random.next() < 0.25 ? 'shared' : 'exclusive';
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
    } else if (chance < 0.35) {
      const controller = new AbortController();
      options.signal = controller.signal;
      setTimeout(() => controller.abort(), this.#random.below(20)).unref();
    }
    try {
      return await this.#manager.request(nameIn(who), options, async (lock) => {
        if (lock === null) return false;
        this.#begin(who, lock);
        await sleep(this.#random.below(LONGEST_HOLD_MS));
        this.#end(who, lock);
        return true;
      });
    } catch (error) {
      return expected(error);
    }
  }

  #block(who, mode) {
    const timeout = this.#random.next() < 0.3 ? this.#random.below(20) : Infinity;
    try {
      return this.#manager.requestSync(nameIn(who), { mode, timeout }, (lock) => {
        this.#begin(who, lock);
        Atomics.wait(pauser, 0, 0, this.#random.below(LONGEST_HOLD_MS));
        this.#end(who, lock);
        return true;
      });
    } catch (error) {
      return expected(error);
    }
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
 * False for what ends a request without the lock; throws all else. A thread that blocks for what its own tasks hold is told
 * of the deadlock.
 */
function expected(error) {
  if (['ERR_LOCK_TIMEOUT', 'ERR_LOCK_DEADLOCK'].includes(error.code) || error.name === 'AbortError') return false;
  throw error;
}

exports.Locker = Locker;
