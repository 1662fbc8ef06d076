// The outer lock of a manager that stands on a store (see ../named/backend.js): asks the lock worker, natively or by promise.

const clock = require('../load/clock.js');
const { binding, isGranted, isMainThread, thread } = require('../engine/thread.js');
const { flush, questionOf } = require('../engine/lock-worker.js');
const { OuterWait } = require('../engine/outer-wait.js');
const { Timer } = require('../engine/timer.js');
const { describe, placeOfName, threadEnding } = require('../errors.js');
const { fromText } = require('../engine/error-text.js');
const { closed, notServed, unacknowledged } = require('./errors.js');
const { deskOfThread } = require('./owner.js');
const { StoreHold } = require('./store-hold.js');
const { descriptionOf, readDescription } = require('./store.js');
const { CALL, FENCE, LOCK, OPEN, TRY } = require('./verbs.js');

const { Number: NUMBER } = binding.Field;
const { FAILED, GRANTED, INTERRUPTED, TIMED_OUT } = binding;

/** For so long the store is asked who holds a name before it counts as silent, in milliseconds. */
const ASKED_MS = 1000;

const notBegun = () => new Error('The thread that keeps the connection to the store has not begun yet.');
const silent = (ms) => new Error(`The store has not answered within ${Math.round(ms)} ms.`);

/** A promise for an answer. */
class StoreWait extends OuterWait {
  #served;
  #timer;
  #owner;

  /**
   * `conclude(status, number)` is that of the wait. `limit`: when the time of the wait is over, and what goes back beside it then;
   * `patience`: the time for an answer, after which `late()` is called.
   */
  constructor(
    owner,
    question,
    { ref, conclude, limit = Infinity, beside, patience = Infinity, late = () => this.cancel() },
  ) {
    super(undefined, ref);
    this.#owner = owner;
    this.conclude = conclude;
    this.begin(binding.askStore(question, limit, beside), question.name);
    owner.waits.add(this);
    if (patience !== Infinity && patience > 0) {
      this.#timer = new Timer(patience, () => {
        // An answer that has come while this thread did not run is read first.
        thread.drain();
        late();
      });
    }
    this.#watchStart();
  }

  errorOf(told) {
    return fromText(told);
  }

  /** A lock worker that the main thread does not start is reported. */
  #watchStart() {
    const { desk, connectTimeout } = this.#owner;
    if (binding.deskState(desk) !== 0) return;
    const look = () => {
      if (binding.deskState(desk) === 0) this.abort(notServed(connectTimeout));
    };
    this.#served = new Timer(connectTimeout, look);
  }

  stopListening() {
    this.#owner.waits.delete(this);
    this.#timer?.stop();
    this.#served?.stop();
    super.stopListening();
  }
}

/** The holds of this thread in stores: one object for a thread, however often the package is loaded there. */
class ThreadStores {
  /** By number. */
  holds = new Map();

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

  /** The hold of this number may have been lost. */
  tellLost(number) {
    this.holds.get(number)?.onLost?.();
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
  /** The names whose mark this has reported: nobody knows whether another thread or process has. */
  reported = new Set();
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
  lockAsync(name, options, { timeout, patience, beside }) {
    const { ref, fence } = options;
    const question = this.#questionFor(name, options, timeout);
    const conclude = (status, number) => new StoreHold(name, status, number, fence, this);
    const late = () => wait.abort(unacknowledged(name, silent(patience)));
    const limits = timeout > 0 ? { limit: timeout, beside } : { patience, late };
    const wait = new StoreWait(this, question, { ref, conclude, ...limits });
    return { promise: wait.promise, cancel: () => wait.cancel() };
  }

  lockBlocking(name, options, { timeout, patience }) {
    const question = this.#questionFor(name, options, timeout);
    const isTry = !(timeout > 0);
    const status = this.#block(question, isTry ? patience || Infinity : timeout);
    if (status === TIMED_OUT && isTry) throw unacknowledged(name, silent(patience));
    if (isGranted(status)) return new StoreHold(name, status, thread.record[NUMBER], options.fence, this);
    switch (status) {
      case FAILED:
        throw fromText(binding.takeTold());
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
    const asked = this.#callOpen('query', { names: [name] }, { patience: ASKED_MS });
    const rows = await asked.catch((error) => {
      throw unacknowledged(name, error);
    });
    if (rows === null) throw unacknowledged(name, silent(ASKED_MS));
    return rows;
  }

  askHoldersBlocking(name) {
    if (!this.#isServed()) throw unacknowledged(name, notBegun());
    const status = this.#callBlocking('query', { names: [name] }, ASKED_MS);
    if (status === GRANTED) return this.#takeCalled();
    throw unacknowledged(name, status === FAILED ? fromText(binding.takeTold()) : silent(ASKED_MS));
  }

  /** The result of the keeper's method. */
  async call(call, parameters = {}) {
    this.check();
    this.#open();
    return this.#callOpen(call, parameters);
  }

  /** As `call`, for what is not awaited. */
  tell(call, parameters) {
    this.#callOpen(call, parameters, { ref: false }).catch(() => {});
  }

  #questionOf(call, parameters) {
    return questionOf(this.desk, this.#space, CALL, JSON.stringify({ call, ...parameters }));
  }

  #takeCalled() {
    const text = binding.takeTold();
    binding.giveBackHeld(thread.record[NUMBER]);
    return JSON.parse(text);
  }

  /** The promise is of null if there is no answer in time. */
  #callOpen(call, parameters, { ref = true, patience } = {}) {
    const question = this.#questionOf(call, parameters);
    return new StoreWait(this, question, { ref, patience, conclude: () => this.#takeCalled() }).promise;
  }

  #callBlocking(call, parameters, timeout) {
    return binding.askStoreBlocking(this.#questionOf(call, parameters), timeout);
  }

  /** A hold of this manager has. */
  ended(hold) {
    this.holds.delete(hold);
    if (this.holds.size === 0) this.#released?.();
  }

  /** Ends what this manager waits for, and what it holds: at once, or, `isPatient`, when it is released. */
  close(isPatient) {
    if (!this.#isClosed) for (const wait of this.waits) wait.abort(closed());
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
    this.reported.clear();
    if (this.#opened < 0 || binding.deskState(this.desk) < 0) return;
    binding.releaseHeld(this.#opened, false);
    // Behind all that was asked before: when this returns, it is on its way.
    await this.#callOpen('flush', {}).catch(() => {});
  }

  #questionFor(name, { mode, fence, isPart }, timeout) {
    this.check();
    this.#open();
    const flags = (timeout > 0 ? 0 : TRY) | (fence ? FENCE : 0);
    return { desk: this.desk, store: this.#space, verb: LOCK, name, mode, isPart, flags, payload: '' };
  }

  /** The lock worker knows this manager. */
  #open() {
    if (this.desk >= 0 && binding.deskState(this.desk) >= 0) return;
    this.desk = deskOfThread();
    this.#opened = binding.openStore(this.desk, this.#space, OPEN, descriptionOf(this.#store));
  }

  #block(question, timeout) {
    if (binding.deskState(this.desk) !== 0) return binding.askStoreBlocking(question, timeout);
    // Main may be too busy to start the lock worker, which answers this at once when it has begun.
    const begun = clock.now();
    const status = this.#callBlocking('flush', {}, Math.min(timeout, this.connectTimeout));
    if (status === GRANTED) this.#takeCalled();
    if (status !== TIMED_OUT || binding.deskState(this.desk) !== 0) {
      return binding.askStoreBlocking(question, Math.max(timeout - (clock.now() - begun), 0));
    }
    if (timeout <= this.connectTimeout) return TIMED_OUT;
    throw notServed(this.connectTimeout);
  }
}

/** The backend of a manager with this store. */
exports.storeBackend = (store) => {
  const text = descriptionOf(store);
  const space = binding.nameSpace(`store:${text}`);
  const { canShare } = readDescription(text);
  const closing = new clock.AbortController();
  return { scope: 'store', space, canSteal: false, canShare, outer: new StoreOuter(store, space), closing };
};
