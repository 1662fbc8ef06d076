// Shared by the keepers of all stores: they connect again, make a request again while its time lasts, and give a lease up before
// its end.

const { createHash } = require('node:crypto');
const { hostname } = require('node:os');
const { inspect } = require('node:util');
const clock = require('../load/clock.js');
const { storeError, saidBy } = require('./errors.js');
const { Reach } = require('./events.js');

/** The system's codes of a connection that is none any more. */
const CUT = new Set(['ECONNRESET', 'EPIPE']);
/** Between two tries, in milliseconds. */
const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 2000;
/** Until then the next byte to a connection that was forgotten has been refused, in milliseconds. */
const AT_ONCE = 250;

/** For so long a store that is closed still sends what was released before, though the server may be silent, in milliseconds. */
exports.FAREWELL_MS = 1000;

const pause = (ms) => new Promise((resolve) => clock.setTimeout(resolve, ms));

/** The pause after one that was in vain. */
const longer = (ms) => Math.min(2 * ms, LONGEST_PAUSE);

/**
 * The pauses between tries to reach a store, the first none. Not a generator: a loop over one awaits its end when it is left, and
 * whatever comes until then would find the loop neither at work nor over.
 */
exports.pauses = () => {
  let wait = 0;
  const next = async () => {
    if (wait > 0) await pause(wait);
    wait = wait > 0 ? longer(wait) : FIRST_PAUSE;
    return { done: false };
  };
  return { [Symbol.asyncIterator]: () => ({ next }) };
};

exports.asStoreError = (store, error) =>
  error.isFinal !== undefined ? error : storeError(`${store} failed: ${saidBy(error)}.`, { cause: error });

/** The error for a value that a client of the program has thrown or rejected with, which need not be one. */
exports.toError = (thrown) =>
  typeof thrown?.message === 'string' ? thrown : new Error(`The client failed with ${inspect(thrown)}`);

/** The value of the promise, if it is fulfilled within `ms`. A later one goes to `end()`. */
exports.within = async (ms, promise, end = () => {}) => {
  let timer;
  const late = new Promise((_, reject) => {
    timer = clock.setTimeout(() => {
      reject(storeError(`The store has not answered within ${ms} ms.`));
      // It may be any thenable of a client.
      Promise.resolve(promise)
        .then(end)
        .catch(() => {});
    }, ms);
  });
  try {
    return await Promise.race([promise, late]);
  } catch (thrown) {
    throw exports.toError(thrown);
  } finally {
    clock.clearTimeout(timer);
  }
};

/** A keeper's connection to its server: one session, or link, at a time, begun when it is first needed. */
exports.Connection = class {
  /** Null before the first, and between two. */
  current = null;
  isClosed = false;
  /** The number of those that there were. */
  count = 0;
  reach;
  #store;
  #begin;
  #end;
  #connecting = null;
  /** Before the next try of those who can wait, in milliseconds; a promise of that. */
  #pause = FIRST_PAUSE;
  #next = null;

  /** `begin()` returns a promise of one that is connected, and `end(one)` ends it. */
  constructor(store, description, begin, end) {
    this.#store = store;
    this.reach = new Reach(description);
    this.#begin = begin;
    this.#end = end;
  }

  get() {
    if (this.isClosed) return Promise.reject(closed());
    if (this.current !== null) return Promise.resolve(this.current);
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  /** As `get()`, for whoever would ask again and again: all of them share one try, after a pause that grows with each in vain. */
  getLater() {
    if (this.isClosed || this.current !== null) return this.get();
    this.#next ??= pause(this.#pause)
      .then(() => this.get())
      .finally(() => {
        this.#next = null;
      });
    return this.#next;
  }

  async #connect() {
    try {
      const one = await this.#begin();
      // Another part of it may have ended while this one began.
      if (this.isClosed || one.isOver) {
        this.#end(one);
        throw this.isClosed ? closed() : storeError(`${this.#store} has ended the connection.`);
      }
      this.current = one;
    } catch (error) {
      this.#pause = longer(this.#pause);
      if (!this.isClosed) this.reach.down(error);
      throw error;
    }
    this.#pause = FIRST_PAUSE;
    this.count += 1;
    this.reach.up();
    if (this.current.isPooled) this.reach.pooler();
    return this.current;
  }

  /** The answer to `ask()`, which changes nothing. */
  async ask(ask) {
    const mayBeForgotten = this.#mayBeForgotten();
    try {
      return await ask();
    } catch (error) {
      if (this.isClosed || !mayBeForgotten(error)) throw error;
      return ask();
    }
  }

  /**
   * Whether an error of a request to a connection that stands may be that of one that was forgotten on its way to the server
   * while it was idle. Such a one fails at once, and another serves. It is so once at most.
   */
  #mayBeForgotten() {
    const asked = this.current;
    let mayBe = asked !== null;
    const begun = clock.now();
    return ({ code, cause }) => {
      const isCut = this.current !== asked || [code, cause?.code].some((each) => CUT.has(each));
      const was = mayBe && isCut && clock.now() - begun < AT_ONCE;
      mayBe = false;
      return was;
    };
  }

  /** It has ended. Returns whether it was the current one. */
  lose(one, error) {
    if (this.current !== one || one === null) return false;
    this.current = null;
    this.reach.down(error);
    return true;
  }

  /** Returns the one that it had. */
  close() {
    const { current } = this;
    this.isClosed = true;
    this.current = null;
    return current;
  }

  /**
   * The grant of `lockOnce()` to a ticket; null if it cannot be had at once, or it is no longer wanted. It is called again after an
   * error that need not stay, once the store was reached.
   */
  async lock(ticket, lockOnce) {
    let isAway = false;
    const mayBeForgotten = this.#mayBeForgotten();
    for (let wait = FIRST_PAUSE; !ticket.isCancelled; ) {
      try {
        if (isAway) await this.getLater();
        return await lockOnce();
      } catch (error) {
        if (ticket.isCancelled) break;
        if (ticket.isTry && mayBeForgotten(error)) {
          ticket.isRepeated = true;
          continue;
        }
        const isOver = this.isClosed || this.count === 0;
        if (ticket.isTry || error.isFinal === true || isOver) throw exports.asStoreError(this.#store, error);
      }
      isAway = this.current === null;
      if (isAway) continue;
      await pause(wait);
      wait = longer(wait);
    }
    return null;
  }
};

const closed = () => storeError('This store was closed.');

/** This process, for those who look from elsewhere. */
exports.OURS = `${hostname().replace(/[^\w.-]/g, '')}-${process.pid}`;

/** A row of `query()` that says who holds a name in another session. */
exports.elsewhere = (name, isShared, clientId, pid = -1) => ({
  name,
  mode: isShared ? 'shared' : 'exclusive',
  clientId,
  pid,
  threadId: -1,
  heldMs: -1,
});

/** The hash that stands for a name in keys. */
exports.hashOf = (name) => createHash('sha256').update(Buffer.from(name, 'utf16le')).digest('base64url');

/** The part of a lease that a client gives up before the server does, in milliseconds. */
exports.marginOf = (lease) => Math.min(Math.max(lease / 20, 10), 1000);

/** The releases that are under way, by name: who tries the name comes after them. */
exports.Releases = class {
  #byName = new Map();

  add(name, released) {
    const all = this.#byName.get(name) ?? new Set();
    this.#byName.set(name, all.add(released));
    const forget = () => {
      all.delete(released);
      if (all.size === 0 && this.#byName.get(name) === all) this.#byName.delete(name);
    };
    released.then(forget, forget);
  }

  /** Resolves when those of this name, or all of them, are over. */
  over(name) {
    const sets = name === undefined ? [...this.#byName.values()] : [this.#byName.get(name) ?? []];
    return Promise.allSettled(sets.flatMap((all) => [...all]));
  }
};
