// Locks that have names: `locks`, and the class that it is of.

const { markAsUncloneable } = require('node:worker_threads');
const { binding, isMainThread, thread } = require('../engine/thread.js');
const { checkFunction } = require('../arguments.js');
const { invalidArgument, mainThread, threadEnding } = require('../errors.js');
const { machineBackend, processBackend } = require('./backend.js');
const { placeOf } = require('./errors.js');
const { HeldLock } = require('./held-lock.js');
const { DEFAULTS, MODES, checkRequest, toBlockingOptions, toName, toOptions } = require('./options.js');
const { obtain, runWith } = require('./requests.js');
const { lazily } = require('../load/lazily.js');

const blocking = lazily(() => require('./blocking.js'));

class LockManager {
  static {
    thread.addClass(LockManager, (manager) => manager.#backend);
  }

  #backend;
  #mayBlock;

  constructor(options) {
    const { backend, allowMainThread } = toManagerOptions(options);
    this.#backend = backend;
    this.#mayBlock = allowMainThread || !isMainThread;
    markAsUncloneable?.(this);
  }

  /** `request(name, callback)`, or `request(name, options, callback)`. */
  request(name, second, ...third) {
    try {
      const backend = this.#backend;
      const hasOptions = third.length > 0;
      const key = toName(name);
      const asked = hasOptions ? toOptions(key, second) : DEFAULTS;
      const run = hasOptions ? third[0] : second;
      if (typeof run !== 'function') throw invalidArgument('callback', 'a function', run, placeOf(key));
      checkRequest(backend, key, asked);
      return obtain(backend, key, asked, (lock) => (lock === null ? run(null) : runWith(lock, run)), 'request');
    } catch (error) {
      return Promise.reject(error);
    }
  }

  acquireAsync(name, options) {
    try {
      const key = toName(name);
      const asked = toOptions(key, options);
      checkRequest(this.#backend, key, asked);
      return obtain(this.#backend, key, asked, (lock) => lock, 'acquireAsync');
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** `requestSync(name, fn)`, or `requestSync(name, options, fn)`. */
  requestSync(name, second, ...third) {
    const hasOptions = third.length > 0;
    const key = toName(name);
    const asked = toBlockingOptions(key, hasOptions ? second : undefined);
    const run = hasOptions ? third[0] : second;
    checkFunction(placeOf(key), 'fn', run);
    const lock = this.#block(key, asked, 'requestSync', 'request()');
    return blocking().runWithBlocking(lock, run);
  }

  acquire(name, options) {
    const key = toName(name);
    return this.#block(key, toBlockingOptions(key, options), 'acquire', 'acquireAsync()');
  }

  #block(name, options, verb, alternative) {
    checkRequest(this.#backend, name, options);
    if (!this.#mayBlock) throw mainThread(placeOf(name), alternative, 'LockManager');
    return blocking().obtainBlocking(this.#backend, name, options, verb);
  }

  query() {
    try {
      return Promise.resolve(query(this.#backend));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  [Symbol.for('nodejs.util.inspect.custom')](_depth, options) {
    if (!(#backend in this)) return this;
    return options.stylize(`[LockManager of the ${this.#backend.scope}]`, 'special');
  }
}

/** Everybody at one moment: who holds, and who waits. */
function query({ space, outer }) {
  const rows = binding.queryNames(space);
  // In a thread that is ending, where Node.js lets nobody make objects.
  if (rows === undefined) throw threadEnding('the named locks', 'query');
  const held = [];
  const pending = [];
  for (const { name, mode, threadId, heldMs } of rows) {
    const clientId = `node-${process.pid}-${threadId}`;
    if (heldMs < 0) pending.push({ name, mode: MODES[mode], clientId });
    else held.push({ name, mode: MODES[mode], clientId, pid: process.pid, threadId, heldMs });
  }
  if (outer !== null) held.push(...outer.query());
  return { held, pending };
}

function toManagerOptions(options) {
  if (options === undefined) return { backend: processBackend, allowMainThread: false };
  if (typeof options !== 'object' || options === null) throw invalidArgument('options', 'an object', options);
  const { scope, directory, allowMainThread = false } = options;
  if (typeof allowMainThread !== 'boolean') {
    throw invalidArgument('options.allowMainThread', 'a boolean', allowMainThread);
  }
  if (directory !== undefined && (typeof directory !== 'string' || directory === '')) {
    throw invalidArgument('options.directory', 'a path', directory);
  }
  if (scope !== undefined && scope !== 'process' && scope !== 'machine') {
    throw invalidArgument('options.scope', '"process" or "machine"', scope);
  }
  if (scope === 'process' && directory !== undefined) {
    throw invalidArgument('options.directory', 'left out for locks of the process', directory);
  }
  const isOfProcess = scope !== 'machine' && directory === undefined;
  return { backend: isOfProcess ? processBackend : machineBackend(directory), allowMainThread };
}

exports.LockManager = LockManager;
exports.HeldLock = HeldLock;
exports.locks = new LockManager();
