// One connection to a server that keeps locks for a session as long as that lives. What servers do differently is a subclass:
//
// - `send(text, values)`: a promise of the rows;
// - `begin(heartbeat)`: sets what every session has, `id`, its number at the server, and `isPooled`, whether the client was told
//   another number; rejects if the server keeps no locks;
// - `tryLock(key, isShared)`: a promise of whether it holds the key now; it never waits;
// - `lock(key, isShared)`: a promise that is fulfilled when it holds the key; its query `blocks`;
// - `unlock(key, isShared)`: a promise of whether it held it; `unlockAll(key)`: of nothing, though a wait for the key may have come to
//   it;
// - `interrupt(other)`: ends what another session waits for; `blockedAmong(ids)`: which sessions the server knows to wait;
// - `fence()`: a number that grows; `holders(keys, own)`: who holds these keys, in sessions that are not of `own`, as
//   `{ key, isShared, id, pid }`;
// - `probe(key, isLock)`: tries the key, or unlocks it; `{ isDone, id }` says whether, and in which session of the server;
// - `isAnswer(error)`: the server says so, and goes on; `isInterruption(error)`; `refusalOf(error)`: null if it may pass by itself;
// - `cut()`: ends the connection at once.
//
// It is asked often enough whether it still answers. The server ends a session whose client it cannot reach, and may then give its
// locks away; no keepalive tells a client of that in time. So all that a session holds is lost once its last answered query was
// sent three heartbeats ago, and the server is set to end it after five.

const clock = require('../../load/clock.js');
const { binding } = require('../../engine/thread.js');
const { FAREWELL_MS, toError } = require('../retry.js');
const { TAKEN, UNREACHABLE } = require('../verbs.js');

/** Heartbeats for which a session is surely there, and after which the server frees it. */
const SURE = 3;
const FREED = 5;

class Session {
  /** By key, how often. */
  held = new Map();
  /** Its number at the server. */
  id = 0;
  /** A request that blocks in it. */
  waiting = null;
  isOver = false;
  lease;
  client;
  /** The time for which the server keeps it, though nothing comes from it, in milliseconds. */
  freedAfter;
  /** The time of the last round trip, in milliseconds. */
  roundTrip = 0;
  #store;
  #desk;
  #heartbeat;
  #timer = null;
  #answeredAt;
  #sentAt = Infinity;
  /** The queries that wait for the one that runs. */
  #queue = [];
  #isRunning = false;
  /** Whether the query that runs may take for ever. */
  #isBlocked = false;
  #whenDone = null;
  #on;

  /**
   * `store` is what the server is called, `client` is connected. `on.onRenewed()` is called after each heartbeat, `on.onEnd(error)`
   * once, when it is over.
   */
  constructor(store, client, desk, heartbeat, on) {
    this.#store = store;
    this.client = client;
    this.freedAfter = FREED * heartbeat;
    this.#desk = desk;
    this.#heartbeat = heartbeat;
    this.#on = on;
    this.#answeredAt = binding.leaseTime();
    this.lease = binding.beginLease(this.#answeredAt + SURE * heartbeat);
    client.on('error', (error) => this.end(error));
    client.on('end', () => this.end());
    this.#timer = clock.setInterval(() => this.#look(), heartbeat / 4).unref();
  }

  get isIdle() {
    return this.held.size === 0 && this.waiting === null;
  }

  /** Whether its last answer is so young that what it grants now lasts. */
  get isFresh() {
    return binding.leaseTime() - this.#answeredAt < this.#heartbeat;
  }

  /** Rejects if it is dead. `blocks`: the answer may take for ever. */
  async query(text, values, { blocks = false } = {}) {
    if (this.isOver) throw this.ended();
    // One at a time: "pg" sends the next when the one before is answered, and warns of those that it has to keep.
    if (this.#isRunning) await new Promise((resolve) => this.#queue.push(resolve));
    this.#isRunning = true;
    try {
      this.#isBlocked = blocks;
      return await this.#send(text, values);
    } finally {
      this.#isBlocked = false;
      const next = this.#queue.shift();
      if (next !== undefined) {
        next();
      } else {
        this.#isRunning = false;
        this.#whenDone?.();
      }
    }
  }

  async #send(text, values) {
    const sentAt = binding.leaseTime();
    if (this.#sentAt === Infinity) this.#sentAt = sentAt;
    try {
      const rows = await this.send(text, values);
      this.#answered(sentAt);
      // The answer was too late, or the end came right behind it.
      if (this.isOver) throw this.ended();
      return rows;
    } catch (thrown) {
      const error = toError(thrown);
      if (!this.isAnswer(error)) {
        this.end(error);
        throw error;
      }
      this.#answered(sentAt);
      throw this.refusalOf(error) ?? error;
    }
  }

  /** Whether it has the key from now on. */
  async take(key, isShared) {
    const isDone = await this.tryLock(key, isShared);
    if (isDone) this.hold(key);
    return isDone;
  }

  hold(key) {
    this.held.set(key, (this.held.get(key) ?? 0) + 1);
  }

  letGo(key) {
    const count = this.held.get(key) ?? 0;
    if (count > 1) this.held.set(key, count - 1);
    else this.held.delete(key);
  }

  /** All that it holds is lost, if it is not at its end anyway. */
  end(error, loss = TAKEN) {
    if (this.isOver) return;
    this.isOver = true;
    clock.clearInterval(this.#timer);
    binding.endLease(this.#desk, this.lease, loss);
    // One that is blocked would not end before it is granted.
    if (error === undefined && loss === 0 && this.waiting === null) this.#endWhenDone();
    else this.#cutQuietly();
    this.#on.onEnd(error);
  }

  /** A client of the program that is over may throw. */
  #cutQuietly() {
    try {
      this.cut();
    } catch {
      // The session is over for this side.
    }
  }

  /** Ends after all that it was asked for before. */
  #endWhenDone() {
    const end = async () => {
      try {
        await this.client.end();
      } catch {
        // As in `#cutQuietly`.
      }
    };
    if (!this.#isRunning) end();
    else this.#whenDone = end;
    // The server may be silent.
    clock.setTimeout(() => this.#cutQuietly(), FAREWELL_MS).unref();
  }

  #answered(sentAt) {
    const now = binding.leaseTime();
    this.roundTrip = now - sentAt;
    this.#sentAt = Infinity;
    // A wait that was blocked says nothing of the time in between.
    if (sentAt < this.#answeredAt) return;
    this.#answeredAt = sentAt;
    const until = sentAt + SURE * this.#heartbeat;
    if (this.isOver || binding.extendLease(this.lease, until)) return;
    if (this.held.size > 0) {
      this.end(this.#unanswered(), UNREACHABLE);
    } else {
      // A session that holds nothing begins anew.
      binding.endLease(this.#desk, this.lease, 0);
      this.lease = binding.beginLease(until);
    }
  }

  ended() {
    return new Error(`The connection to ${this.#store} has ended.`);
  }

  #unanswered() {
    return new Error(`${this.#store} did not answer in time.`);
  }

  #look() {
    const now = binding.leaseTime();
    const silence = now - Math.max(this.#answeredAt, 0);
    if (this.#isBlocked) return;
    if (this.held.size > 0 && silence >= SURE * this.#heartbeat) this.end(this.#unanswered(), UNREACHABLE);
    else if (now - this.#sentAt >= SURE * this.#heartbeat) this.end(this.#unanswered(), UNREACHABLE);
    else if (silence >= this.#heartbeat && this.#sentAt === Infinity)
      this.query('select 1').then(this.#on.onRenewed, () => {});
  }
}

exports.Session = Session;
