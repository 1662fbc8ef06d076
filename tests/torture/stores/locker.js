// Asks for locks of a store in every way, writes to the register while it holds, and looks whether each loss was reported.

const { setTimeout: sleep } = require('node:timers/promises');
const { LockManager } = require('../../..');
const { createRandom } = require('../processes/random.js');
const { LIMIT } = require('./kinds.js');
const { now } = require('./register.js');

/** The time for which one who was refused may wait until it learns of its loss. A process that was stopped looks once more. */
const TELL_MS = 5 * LIMIT;
const EXPECTED = ['ERR_LOCK_TIMEOUT', 'ERR_LOCK_LOST', 'ERR_LOCK_STORE', 'ERR_LOCK_CLOSED', 'ERR_LOCK_DEADLOCK'];
const cell = new Int32Array(new SharedArrayBuffer(4));
const block = (ms) => Atomics.wait(cell, 0, 0, ms);

/** Whether the key of a lock of etcd is still the one that its grant made, as far as etcd says it. Others have none. */
async function hasKey(url, { key, fence }) {
  if (key === null) return true;
  const compare = [{ key: Buffer.from(key).toString('base64'), target: 'CREATE', create_revision: String(fence) }];
  try {
    const settings = { method: 'POST', body: JSON.stringify({ compare }), signal: AbortSignal.timeout(LIMIT) };
    const { succeeded, header } = await (await fetch(`${url}/v3/kv/txn`, settings)).json();
    return header === undefined || succeeded === true;
  } catch {
    return true;
  }
}

/** A wait, which is over once. */
class Wait {
  #onEnd;

  constructor(onEnd) {
    this.#onEnd = onEnd;
  }

  end() {
    this.#onEnd?.();
    this.#onEnd = null;
  }
}

class Locker {
  #open;
  #url;
  #random;
  #names;
  #write;
  #tell;
  #holder;
  #serial = 0;
  #isOver = false;
  #canShare;
  #watchesDelays;
  #manager;

  /** `write(entry)` returns whether the register takes it, or a promise of that; `tell(what, message)` goes to the parent. */
  constructor({ kind, canShare, watchesDelays, connection, settings, names, seed, holder }, { write, tell }) {
    this.#canShare = canShare;
    this.#watchesDelays = watchesDelays;
    const make = require(`../../../lib/stores/${kind}.js`)[kind];
    this.#open = () => new LockManager({ store: make(connection, settings) });
    this.#url = connection;
    this.#manager = this.#open();
    this.#random = createRandom(seed);
    this.#names = names;
    this.#holder = holder;
    this.#write = write;
    this.#tell = tell;
  }

  /** Until `finish()`. */
  async run(tasks, isBlocking = false) {
    const loop = async () => {
      while (!this.#isOver) {
        if (isBlocking) this.#block();
        else await this.#ask();
        // Its loop turns in any case.
        await sleep(this.#random.below(5));
      }
    };
    await Promise.all(Array.from({ length: tasks }, loop));
    await this.#manager.close();
  }

  finish() {
    this.#isOver = true;
  }

  /** Returns what is held and waited for in this process. */
  query() {
    return this.#manager.query().catch(({ message }) => ({ held: [], pending: message }));
  }

  get #mode() {
    return this.#random.next() < 0.3 && this.#canShare ? 'shared' : 'exclusive';
  }

  get #name() {
    const name = () => `torture ${this.#random.below(this.#names)}`;
    return this.#random.next() < 0.15 && !this.#watchesDelays ? [...new Set([name(), name()])] : name();
  }

  /** Tells the witness of delays. */
  #note(what, name) {
    if (this.#watchesDelays) this.#tell(what, name);
  }

  async #ask() {
    const chance = this.#random.next();
    const options = { mode: this.#mode, fence: true };
    if (chance < 0.1) options.ifAvailable = true;
    else if (chance < 0.3) options.timeout = this.#random.below(40);
    else if (chance < 0.4) options.timeout = this.#random.below(2 * LIMIT);
    else if (chance < 0.55) options.signal = AbortSignal.timeout(this.#random.below(60));
    const manager = this.#manager;
    if (chance > 0.99) {
      this.#manager = this.#open();
      setTimeout(() => manager.close(), this.#random.below(50));
    }
    let lost = null;
    const asked = now();
    const names = this.#name;
    const waits = new Wait(() => this.#note('waitsNoMore', names));
    this.#note('waits', names);
    try {
      await manager.request(names, options, async (held) => {
        if (held === null) return;
        this.#note('holds', names);
        waits.end();
        try {
          for (const lock of [held].flat()) lost ??= await this.#hold(lock, asked);
        } finally {
          this.#note('holdsNoMore', names);
        }
      });
      if (lost !== null) this.#tell('wrong', `the request of ${lost} was fulfilled though it was lost`);
    } catch (error) {
      this.#refuse(error);
    } finally {
      waits.end();
    }
  }

  /** Returns what was lost, or null. */
  async #hold(lock, asked) {
    const entry = this.#begin(lock, asked);
    const writes = 1 + this.#random.below(3);
    for (let write = 0; write < writes; write += 1) {
      // Some hold for long, and meet what becomes of the store.
      await sleep(this.#random.below(this.#random.next() < 0.04 ? LIMIT : 12));
      // The loop is blocked beyond the lease: somebody else renews.
      if (this.#random.next() < 0.005) block(1.5 * LIMIT);
      if ((await this.#write(entry)) && (await hasKey(this.#url, lock))) continue;
      const until = performance.now() + TELL_MS;
      while (lock.locked && performance.now() < until) await sleep(20);
      this.#judge(lock, entry);
      return entry.text;
    }
    this.#tell('held');
    return null;
  }

  #block() {
    const options = { mode: this.#mode, fence: true };
    if (this.#random.next() < 0.4) options.timeout = this.#random.below(100);
    let lost = null;
    const asked = now();
    const names = this.#name;
    const waits = new Wait(() => this.#note('waitsNoMore', names));
    this.#note('waits', names);
    try {
      this.#manager.requestSync(names, options, (held) => {
        this.#note('holds', names);
        waits.end();
        for (const lock of [held].flat()) {
          const entry = this.#begin(lock, asked);
          block(this.#random.below(12));
          if (this.#write(entry)) {
            this.#tell('held');
            continue;
          }
          const until = performance.now() + TELL_MS;
          while (lock.locked && performance.now() < until) block(20);
          this.#judge(lock, entry);
          lost = entry.text;
        }
        this.#note('holdsNoMore', names);
      });
      if (lost !== null) this.#tell('wrong', `requestSync() of ${lost} returned though it was lost`);
    } catch (error) {
      this.#refuse(error);
    } finally {
      waits.end();
    }
  }

  #begin(lock, asked) {
    if (lock.abandoned && lock.mode === 'exclusive') lock.markConsistent();
    this.#serial += 1;
    const { name, fence, mode } = lock;
    const holder = `${this.#holder}.${this.#serial}`;
    const text = `${name}, ${fence} of ${holder}`;
    return { name, fence: String(fence), holder, asked, isShared: mode === 'shared', text };
  }

  /** It was refused. */
  #judge(lock, { text }) {
    if (lock.locked) this.#tell('wrong', `${text} was refused, and its loss not reported within ${TELL_MS} ms`);
    else if (!lock.signal.aborted || lock.signal.reason.code !== 'ERR_LOCK_LOST') {
      this.#tell('wrong', `${text} was lost, but its signal has the reason ${lock.signal.reason}`);
    } else this.#tell('told');
  }

  #refuse(error) {
    if (EXPECTED.includes(error.code) || error.name === 'AbortError' || error.name === 'TimeoutError') return;
    this.#tell('wrong', error.stack);
  }
}

exports.Locker = Locker;
