// Locks that have names: `locks`, and the class that it is of.

const { markAsUncloneable } = require('node:worker_threads');
const clock = require('../load/clock.js');
const { binding, isMainThread, thread } = require('../engine/thread.js');
const { checkBoolean, checkFunction, checkNames, checkOptions, own } = require('../arguments.js');
const { invalidArgument, invalidThis, mainThread, threadEnding } = require('../errors.js');
const { machineBackend, processBackend, storeBackend } = require('./backend.js');
const { notSupported, placeOf } = require('./errors.js');
const { HeldLock, endOf } = require('./held-lock.js');
const { DEFAULTS, MODES, checkRequest, toBlockingOptions, toName, toOptions } = require('./options.js');
const { obtain, runWith } = require('./requests.js');
const { readRows } = require('./rows.js');
const takeOver = require('./take-over.js');
const { lazily } = require('../load/lazily.js');

// These are loaded before anything is locked. A file that is needed after a grant and cannot be loaded, for want of a descriptor,
// would leave the lock held.
const blocking = lazily(() => require('./blocking.js'));
const several = lazily(() => require('./several.js'));

/** Whether something is to be done before the lock is used, or one of the locks: it may be marked, or its holder to be warned. */
const isDue = (held, onAbandoned) =>
  onAbandoned !== undefined || (Array.isArray(held) ? held.some((lock) => endOf(lock) !== null) : endOf(held) !== null);

/** The name, or each of the names once. */
const toKey = (name) => (Array.isArray(name) ? several().toNames(name) : toName(name));

/** Refuses a request that is not allowed. */
function check(backend, key, options) {
  if (Array.isArray(key)) several().checkRequests(backend, key, options);
  else checkRequest(backend, key, options);
}

/** As `obtain`, for a name or for several. */
function obtainAll(backend, key, options, use, verb) {
  check(backend, key, options);
  if (Array.isArray(key)) return several().obtainSeveral(backend, key, options, use, verb);
  return obtain(backend, key, options, use, verb);
}

class LockManager {
  static {
    thread.addClass('LockManager', LockManager, (manager) => manager.#backend);
  }

  #backend;
  #mayBlock;
  #onAbandoned;

  constructor(options) {
    const { backend, allowMainThread, onAbandoned } = toManagerOptions(options);
    this.#backend = backend;
    this.#mayBlock = allowMainThread || !isMainThread;
    this.#onAbandoned = onAbandoned;
    markAsUncloneable?.(this);
  }

  /** `request(name, callback)`, or `request(name, options, callback)`; the name may be an array of names. */
  request(name, second, ...third) {
    try {
      const hasOptions = third.length > 0;
      const key = toKey(name);
      const asked = hasOptions ? toOptions(key, second) : DEFAULTS;
      const callback = hasOptions ? third[0] : second;
      if (typeof callback !== 'function') throw invalidArgument('callback', 'a function', callback, placeOf(key));
      const onAbandoned = this.#onAbandoned;
      const use = (held) => {
        if (held === null) return callback(null);
        if (!isDue(held, onAbandoned)) return runWith(held, callback);
        return takeOver.run([held].flat(), callback, onAbandoned, (run) => runWith(held, run));
      };
      return obtainAll(this.#backend, key, asked, use, 'request');
    } catch (error) {
      return rejectCall(error, #backend in Object(this), this, 'request');
    }
  }

  acquireAsync(name, options) {
    try {
      const key = toKey(name);
      const asked = toOptions(key, options);
      const onAbandoned = this.#onAbandoned;
      const use = (locks) => {
        const held = Array.isArray(locks) ? several().newLocks(locks) : locks;
        if (locks === null || !isDue(locks, onAbandoned)) return held;
        return takeOver.accept(held, [locks].flat(), onAbandoned);
      };
      return obtainAll(this.#backend, key, asked, use, 'acquireAsync');
    } catch (error) {
      return rejectCall(error, #backend in Object(this), this, 'acquireAsync');
    }
  }

  /** `requestSync(name, fn)`, or `requestSync(name, options, fn)`; the name may be an array of names. */
  requestSync(name, second, ...third) {
    const hasOptions = third.length > 0;
    const key = toKey(name);
    const asked = toBlockingOptions(key, hasOptions ? second : undefined);
    const fn = hasOptions ? third[0] : second;
    checkFunction(placeOf(key), 'fn', fn);
    const held = this.#block(key, asked, 'requestSync', 'request()');
    const isWarned = held !== null && this.#onAbandoned === undefined && isDue(held);
    return blocking().runWithBlocking(held, fn, isWarned);
  }

  acquire(name, options) {
    const key = toKey(name);
    const held = this.#block(key, toBlockingOptions(key, options), 'acquire', 'acquireAsync()');
    return held !== null && Array.isArray(key) ? several().newLocks(held) : held;
  }

  #block(key, options, verb, alternative) {
    const backend = this.#backend;
    check(backend, key, options);
    if (!this.#mayBlock) throw mainThread(placeOf(key), alternative, 'LockManager');
    const onAbandoned = this.#onAbandoned;
    // A callback is run first, and may repair by itself.
    const isTold = verb === 'acquire' || onAbandoned !== undefined;
    const accept = isTold
      ? (lock) => isDue(lock, onAbandoned) && takeOver.acceptBlocking(lock, onAbandoned)
      : undefined;
    if (Array.isArray(key)) return several().obtainSeveralBlocking(backend, key, options, verb, accept);
    return blocking().obtainBlocking(backend, key, options, verb, accept);
  }

  query() {
    try {
      const { outer } = this.#backend;
      const seen = query(this.#backend);
      return outer === null ? seen : withHoldersElsewhere(seen, outer);
    } catch (error) {
      return rejectCall(error, #backend in Object(this), this, 'query');
    }
  }

  async close(options) {
    if (!(#backend in Object(this))) throw invalidThis(this, 'close');
    const isPatient = options !== undefined && toWait(options);
    const { closing, outer } = this.#backend;
    if (closing === undefined) return;
    closing.abort(require('../stores/errors.js').closed());
    await outer.close(isPatient);
  }

  async check() {
    if (!(#backend in Object(this))) throw invalidThis(this, 'check');
    return this.#storeOf('check').call('check');
  }

  async stats() {
    if (!(#backend in Object(this))) throw invalidThis(this, 'stats');
    return this.#storeOf('stats').call('stats');
  }

  #storeOf(verb) {
    const { closing, outer } = this.#backend;
    if (closing === undefined) throw notSupported(`${verb}() is for a LockManager with a store.`);
    return outer;
  }

  [Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]() {
    return this.close();
  }

  [Symbol.for('nodejs.util.inspect.custom')](_depth, options) {
    if (!(#backend in this)) return this;
    return options.stylize(`[LockManager of the ${this.#backend.scope}]`, 'special');
  }
}

/** A promise of everybody in this process at the moment of the call: who holds, and who waits. */
function query({ space }) {
  const seen = binding.queryNames(space);
  // In a thread that is ending, where no objects can be made.
  if (seen === undefined) throw threadEnding('the named locks', 'query');
  const snapshot = { held: [], pending: [] };
  const clientIds = new Map();
  const add = (name, number, threadId, heldMs) => {
    const mode = MODES[number];
    if (!clientIds.has(threadId)) clientIds.set(threadId, `node-${process.pid}-${threadId}`);
    const clientId = clientIds.get(threadId);
    if (heldMs < 0) snapshot.pending.push({ name, mode, clientId });
    else snapshot.held.push({ name, mode, clientId, pid: process.pid, threadId, heldMs });
  };
  return readRows(seen, add).then(() => snapshot);
}

/** The option of `close()`. */
function toWait(options) {
  checkOptions(options);
  checkNames(options, ['wait']);
  const wait = own(options, 'wait', false);
  checkBoolean('options.wait', wait);
  return wait;
}

/** A promise that is rejected with the error, or with what `verb` was called on, if that is no manager. */
const rejectCall = (error, isOwn, self, verb) => Promise.reject(isOwn ? error : invalidThis(self, verb));

/** The same, and who holds in other processes. Nobody is held twice: what this one held, another may have been given since. */
async function withHoldersElsewhere(seen, outer) {
  const askedAt = clock.now();
  const { held, pending } = await seen;
  const mine = new Set(held.map(({ name }) => name));
  const elsewhere = await outer.query([...new Set([...mine, ...pending.map(({ name }) => name)])]);
  const elapsed = clock.now() - askedAt;
  const isLater = ({ name, heldMs }) => mine.has(name) && heldMs >= 0 && heldMs <= elapsed;
  return { held: held.concat(elsewhere.filter((row) => !isLater(row))), pending };
}

const OPTIONS = ['scope', 'directory', 'store', 'allowMainThread', 'onAbandoned'];

function toManagerOptions(options) {
  if (options === undefined) return { backend: processBackend, allowMainThread: false, onAbandoned: undefined };
  checkOptions(options);
  checkNames(options, OPTIONS);
  const [scope, directory, store, allowMainThread = false, onAbandoned] = OPTIONS.map((name) => own(options, name));
  checkBoolean('options.allowMainThread', allowMainThread);
  if (onAbandoned !== undefined) checkFunction(undefined, 'options.onAbandoned', onAbandoned);
  if (directory !== undefined && (typeof directory !== 'string' || directory === '')) {
    throw invalidArgument('options.directory', 'a path', directory);
  }
  if (scope !== undefined && scope !== 'process' && scope !== 'machine') {
    throw invalidArgument('options.scope', '"process" or "machine"', scope);
  }
  if (store !== undefined) {
    if (!require('../stores/store.js').isStore(store)) {
      throw invalidArgument('options.store', 'what postgres() of "sablock/postgres" and its like return', store);
    }
    if (scope !== undefined || directory !== undefined) {
      throw invalidArgument('options.scope', 'left out, as "directory", where there is a store', scope ?? directory);
    }
    return { backend: storeBackend(store), allowMainThread, onAbandoned };
  }
  if (scope === 'process' && directory !== undefined) {
    throw invalidArgument('options.directory', 'left out for locks of the process', directory);
  }
  const isOfProcess = scope !== 'machine' && directory === undefined;
  return { backend: isOfProcess ? processBackend : machineBackend(directory), allowMainThread, onAbandoned };
}

exports.LockManager = LockManager;
exports.HeldLock = HeldLock;
Object.defineProperty(exports, 'HeldLocks', { enumerable: true, get: () => several().HeldLocks });
exports.locks = new LockManager();
