// The outer lock of a manager that stands on a store (see ../named/backend.js): asks the lock worker, natively or by promise.

const { AsyncResource } = require('node:async_hooks');
const clock = require('../load/clock.js');
const { binding, isMainThread, thread } = require('../engine/thread.js');
const { flush } = require('../engine/lock-worker.js');
const { Timer } = require('../engine/timer.js');
const { describe, noBackgroundThread, placeOfName, threadEnding } = require('../errors.js');
const { fromText } = require('../engine/error-text.js');
const { closed, notServed, unacknowledged } = require('./errors.js');
const { deskOfThread } = require('./owner.js');
const { StoreHold } = require('./store-hold.js');
const { descriptionOf, readDescription } = require('./store.js');
const { CALL, FENCE, LOCK, OPEN, TRY } = require('./verbs.js');

const { Exclusive, Shared } = binding.NameMode;
const { Number: NUMBER } = binding.Field;
const { GRANTED, INTERRUPTED, STORE_FAILED, STORE_LOST, TIMED_OUT } = binding;

/** For so long the store is asked who holds a name before it counts as silent, in milliseconds. */
const ASKED_MS = 1000;

const notBegun = () => new Error('The thread that keeps the connection to the store has not begun yet.');
const silent = (ms) => new Error(`The store has not answered within ${Math.round(ms)} ms.`);

/** A promise for an answer. It is an async resource for the tools that show what keeps a process alive. */
class StoreWait extends AsyncResource {
  #number;
  #ref;
  #timer;
  #served;
  #settle;
  #owner;
  #conclude;

  /** `conclude(number)` makes of a grant what the promise is fulfilled with; `late()` is called when the time is over. */
  constructor(owner, number, timeout, ref, conclude, late = () => this.cancel()) {
    super('SablockWait');
    this.#owner = owner;
    this.#number = number;
    this.#ref = ref;
    this.#conclude = conclude;
    this.promise = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    thread.stores.waits.set(number, this);
    owner.waits.add(this);
    if (ref) thread.keepAlive(true);
    if (timeout !== Infinity && timeout > 0) {
      this.#timer = new Timer(timeout, () => {
        // An answer that has come while this thread did not run is read first.
        thread.stores.drain();
        late();
      });
    }
    this.#watchStart();
  }

  hasRef() {
    return this.#ref && thread.stores.waits.has(this.#number);
  }

  /** It is over, with this status. */
  settle(status) {
    this.#end();
    if (status === STORE_FAILED) this.#settle.reject(fromText(binding.takeStoreText()));
    else this.#settle.resolve(status === GRANTED ? this.#conclude(this.#number) : null);
  }

  /** False if it is over. */
  #withdraw() {
    if (!thread.stores.waits.has(this.#number)) return false;
    binding.cancelStore(this.#number);
    this.#end();
    return true;
  }

  fail(error) {
    if (this.#withdraw()) this.#settle.reject(error);
  }

  /** Withdraws it, unless it is over. */
  cancel() {
    if (this.#withdraw()) this.#settle.resolve(null);
  }

  /** A lock worker that the main thread does not start is reported. */
  #watchStart() {
    const { desk, connectTimeout } = this.#owner;
    if (binding.deskState(desk) !== 0) return;
    const look = () => {
      if (binding.deskState(desk) === 0) this.fail(notServed(connectTimeout));
    };
    this.#served = new Timer(connectTimeout, look);
  }

  #end() {
    thread.stores.waits.delete(this.#number);
    this.#owner.waits.delete(this);
    this.#timer?.stop();
    this.#served?.stop();
    if (this.#ref) thread.keepAlive(false);
    this.emitDestroy();
  }
}

/** The requests of this thread: one object for a thread, however often the package is loaded there. */
class ThreadStores {
  /** By number. */
  waits = new Map();
  holds = new Map();
  /** The numbers by which managers are known to the lock worker, until that has answered. */
  opened = new Set();

  constructor() {
    process.on('exit', () => this.#end());
  }

  /** Before the lock worker ends with its thread. Where that is another one, and at other ends, the core sees to it. */
  #end() {
    if (this.holds.size === 0) return;
    for (const hold of this.holds.values()) hold.abandon();
    // The listener of its start may have been called before.
    if (isMainThread) flush(thread.deskNumber);
  }

  drain() {
    for (let status = binding.nextStore(); status >= 0; status = binding.nextStore()) {
      const number = thread.record[NUMBER];
      if (status === STORE_LOST) {
        this.holds.get(number)?.onLost?.();
        continue;
      }
      const wait = this.waits.get(number);
      if (wait !== undefined) wait.settle(status);
      else if (this.opened.delete(number)) continue;
      // Its call was interrupted before anybody got the promise.
      else if (status === GRANTED) binding.releaseStore(number, false);
    }
  }
}

/** A store, as its manager has it. */
class StoreOuter {
  /** The face asks it by promise at once; there is nothing to try before. */
  isAsync = true;
  holds = new Set();
  waits = new Set();
  /** The desk of the lock worker that serves it; -1 before the first request. */
  desk = -1;
  connectTimeout;
  #store;
  #space;
  #opened = -1;
  #isClosed = false;
  #closing = null;
  /** Called when it holds nothing any more, while it is closed and that is waited for. */
  #released = null;

  constructor(store, space) {
    this.#store = store;
    this.#space = space;
    this.connectTimeout = readDescription(descriptionOf(store)).settings.connectTimeout;
    thread.stores ??= new ThreadStores();
  }

  /** Throws if the manager was closed. */
  check() {
    if (this.#isClosed) throw closed();
  }

  /** A try, with a timeout of 0, is answered by the lock worker, within `patience`. */
  lockAsync(name, mode, timeout, ref, wantsFence, _isPart, beside, patience = Infinity) {
    const number = this.#askFor(name, mode, timeout, wantsFence);
    const conclude = () => new StoreHold(number, wantsFence, this);
    const late = () => wait.fail(unacknowledged(name, silent(patience)));
    const wait = new StoreWait(this, number, timeout > 0 ? Infinity : patience, ref, conclude, late);
    // Whatever this thread does then.
    if (timeout > 0 && timeout < Infinity && !binding.expireStore(number, timeout, beside)) {
      wait.fail(noBackgroundThread(describe(placeOfName(name))));
    }
    return { promise: wait.promise, cancel: () => wait.cancel() };
  }

  lockBlocking(name, mode, timeout, wantsFence, _isPart, patience = Infinity) {
    const number = this.#askFor(name, mode, timeout, wantsFence);
    const isTry = !(timeout > 0);
    const status = this.#block(number, isTry ? patience || Infinity : timeout);
    if (status === TIMED_OUT && isTry) throw unacknowledged(name, silent(patience));
    switch (status) {
      case GRANTED:
        return new StoreHold(number, wantsFence, this);
      case STORE_FAILED:
        throw fromText(binding.takeStoreText());
      case INTERRUPTED:
        throw threadEnding(describe(placeOfName(name)));
      default:
        return null;
    }
  }

  /** Holders elsewhere of the names that this process asks for. */
  async query(names) {
    this.check();
    if (names.length === 0) return [];
    return this.call('query', { names });
  }

  /** Whether there may be an answer soon. */
  #isServed() {
    return !this.#isClosed && this.#opened >= 0 && binding.deskState(this.desk) > 0;
  }

  /** As `query`. Rejects if the store does not say it soon: then nothing is known of the name. */
  async askHolders(name) {
    if (!this.#isServed()) throw unacknowledged(name, notBegun());
    const asked = this.#callOpen('query', { names: [name] }, true, ASKED_MS);
    const rows = await asked.catch((error) => {
      throw unacknowledged(name, error);
    });
    if (rows === null) throw unacknowledged(name, silent(ASKED_MS));
    return rows;
  }

  askHoldersBlocking(name) {
    if (!this.#isServed()) throw unacknowledged(name, notBegun());
    const number = this.#askCall({ call: 'query', names: [name] });
    const status = binding.waitStore(number, ASKED_MS);
    if (status === GRANTED) return this.#takeCalled(number);
    throw unacknowledged(name, status === STORE_FAILED ? fromText(binding.takeStoreText()) : silent(ASKED_MS));
  }

  /** The result of the keeper's method. */
  async call(call, parameters = {}) {
    this.check();
    this.#open();
    return this.#callOpen(call, parameters);
  }

  /** As `call`, for what is not awaited. */
  tell(call, parameters) {
    this.#callOpen(call, parameters, false).catch(() => {});
  }

  #askCall(payload) {
    return binding.askStore(this.desk, this.#space, CALL, '', Exclusive, 0, JSON.stringify(payload));
  }

  #takeCalled(number) {
    const text = binding.takeStoreText();
    binding.releaseStore(number, false);
    return JSON.parse(text);
  }

  /** The promise is of null if there is no answer in time. */
  #callOpen(call, parameters, ref = true, timeout = Infinity) {
    const number = this.#askCall({ call, ...parameters });
    return new StoreWait(this, number, timeout, ref, () => this.#takeCalled(number)).promise;
  }

  /** A hold of this manager has. */
  ended(hold) {
    this.holds.delete(hold);
    if (this.holds.size === 0) this.#released?.();
  }

  /** Ends what this manager waits for, and what it holds: at once, or, `isPatient`, when it is released. */
  close(isPatient) {
    if (!this.#isClosed) for (const wait of this.waits) wait.fail(closed());
    this.#isClosed = true;
    if (!isPatient) for (const hold of this.holds) hold.lose('closed');
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close() {
    if (this.holds.size > 0) {
      await new Promise((resolve) => {
        this.#released = resolve;
      });
    }
    if (this.#opened < 0 || binding.deskState(this.desk) < 0) return;
    binding.releaseStore(this.#opened, false);
    // Behind all that was asked before: when this returns, it is on its way.
    await this.#callOpen('flush', {}).catch(() => {});
  }

  #askFor(name, mode, timeout, wantsFence) {
    this.check();
    this.#open();
    const flags = (timeout > 0 ? 0 : TRY) | (wantsFence ? FENCE : 0);
    return binding.askStore(this.desk, this.#space, LOCK, name, mode === 'shared' ? Shared : Exclusive, flags, '');
  }

  /** The lock worker knows this manager. */
  #open() {
    if (this.desk >= 0 && binding.deskState(this.desk) >= 0) return;
    this.desk = deskOfThread();
    this.#opened = binding.askStore(this.desk, this.#space, OPEN, '', Exclusive, 0, descriptionOf(this.#store));
    thread.stores.opened.add(this.#opened);
  }

  #block(number, timeout) {
    if (binding.deskState(this.desk) !== 0) return binding.waitStore(number, timeout);
    // Main may be too busy to start the lock worker, which answers this at once when it has begun.
    const begun = clock.now();
    const asked = this.#askCall({ call: 'flush' });
    const status = binding.waitStore(asked, Math.min(timeout, this.connectTimeout));
    if (status === GRANTED) this.#takeCalled(asked);
    if (status !== TIMED_OUT || binding.deskState(this.desk) !== 0) {
      return binding.waitStore(number, Math.max(timeout - (clock.now() - begun), 0));
    }
    binding.cancelStore(number);
    if (timeout <= this.connectTimeout) return TIMED_OUT;
    throw notServed(this.connectTimeout);
  }
}

/** The backend of a manager with this store. */
exports.storeBackend = (store) => {
  const space = binding.nameSpace(`store:${descriptionOf(store)}`);
  const closing = new AbortController();
  return { scope: 'store', space, canSteal: false, outer: new StoreOuter(store, space), closing };
};
