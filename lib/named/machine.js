// Locks of the machine: what is locked outside of the process is a file, by the kernel. See backend.js, and src/files.

const { AsyncResource } = require('node:async_hooks');
const { binding, thread } = require('../engine/thread.js');
const { describe, threadEnding } = require('../errors.js');
const { placeOf } = require('./errors.js');
const { directoryError, removed, unwritten } = require('./machine-errors.js');

const { Exclusive, Shared } = binding.NameMode;
const { EndedProcess, EndedThread, HasEnded, Number: NUMBER, Token } = binding.Field;
const { FILE_FAILED, GRANTED, GRANTED_ABANDONED, INTERRUPTED, TIMED_OUT } = binding;

/** Timers of Node.js count no further. */
const LONGEST_TIMER = 2 ** 31 - 1;

// From the beginning: who replaces the timers of a test does not stop the clock of other processes.
const { setTimeout, clearTimeout } = globalThis;

const toMode = (mode) => (mode === 'shared' ? Shared : Exclusive);

/** A file that this thread has locked. */
class FileHold {
  #number;
  #isAbandoned;
  #path;
  #name;

  /** Of the call of the binding that has just returned this status. */
  constructor(status, path, name) {
    const { record } = thread;
    this.#number = record[NUMBER];
    this.#isAbandoned = status === GRANTED_ABANDONED;
    this.#path = path;
    this.#name = name;
    /** Who ended inside, if this thread is the first to learn of it: `{ pid, threadId }`, -1 where that is not known. */
    this.ended = record[HasEnded] === 1 ? { pid: record[EndedProcess], threadId: record[EndedThread] } : null;
    record[HasEnded] = 0;
  }

  get abandoned() {
    return this.#isAbandoned;
  }

  markConsistent() {
    binding.markFileConsistent(this.#number);
    this.#isAbandoned = false;
  }

  unlock() {
    const found = binding.releaseFile(this.#number);
    if ((found & binding.FILE_REMOVED) !== 0) removed(this.#name, this.#path);
    if ((found & binding.RECORD_UNWRITTEN) !== 0) unwritten(this.#name, binding.takeFileFailure());
  }
}

/** A promise for a file. It is an async resource for the tools that show what keeps a process alive. */
class FileWait extends AsyncResource {
  #number;
  #path;
  #name;
  #ref;
  #timer;
  #settle;

  constructor(directory, name, mode, timeout, ref) {
    super('SablockWait');
    this.#path = directory.path;
    this.#name = name;
    this.#ref = ref;
    this.promise = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    thread.files ??= new FileWaits();
    binding.lockFileAsync(directory.number, name, mode);
    this.#number = thread.record[NUMBER];
    thread.files.add(this.#number, this);
    if (ref) thread.keepAlive(true);
    if (timeout !== Infinity) this.#startTimer(performance.now() + timeout);
  }

  hasRef() {
    return this.#ref && thread.files.has(this.#number);
  }

  /** It is over, with this status. */
  settle(status) {
    this.#end();
    if (status === FILE_FAILED) {
      this.#settle.reject(directoryError(binding.takeFileFailure(), placeOf(this.#name)));
    } else {
      this.#settle.resolve(new FileHold(status, this.#path, this.#name));
    }
  }

  /** Withdraws it; false if it is over. */
  cancel() {
    if (!thread.files.has(this.#number)) return false;
    binding.cancelFile(this.#number);
    this.#end();
    return true;
  }

  #startTimer(deadline) {
    const left = Math.max(deadline - performance.now(), 0);
    const look = () => {
      if (performance.now() < deadline) this.#startTimer(deadline);
      else if (this.cancel()) this.#settle.resolve(null);
    };
    // What keeps the event loop alive is the wait, if anything. Rounded up: a timer may be early.
    this.#timer = setTimeout(look, Math.min(Math.ceil(left), LONGEST_TIMER)).unref();
  }

  #end() {
    thread.files.delete(this.#number);
    clearTimeout(this.#timer);
    if (this.#ref) thread.keepAlive(false);
    this.emitDestroy();
  }
}

/** The pending ones of this thread: one object for a thread, however often the package is loaded there. */
class FileWaits {
  /** By number. */
  #waits = new Map();

  add(number, wait) {
    this.#waits.set(number, wait);
  }

  has(number) {
    return this.#waits.has(number);
  }

  delete(number) {
    this.#waits.delete(number);
  }

  drain() {
    for (let status = binding.nextFile(); status >= 0; status = binding.nextFile()) {
      const wait = this.#waits.get(thread.record[Token]);
      // None: its call was interrupted, by a `vm` timeout for one, before anybody got the promise.
      if (wait !== undefined) wait.settle(status);
      else if (status !== FILE_FAILED) binding.releaseFile(thread.record[NUMBER]);
    }
  }
}

/** The files of one directory. */
class Files {
  #directory;

  constructor(directory) {
    this.#directory = directory;
  }

  tryLock(name, mode) {
    return this.#conclude(binding.tryLockFile(this.#directory.number, name, toMode(mode)), name);
  }

  lockAsync(name, mode, timeout, ref) {
    const wait = new FileWait(this.#directory, name, toMode(mode), timeout, ref);
    return { promise: wait.promise, cancel: () => wait.cancel() };
  }

  lockBlocking(name, mode, timeout) {
    return this.#conclude(binding.lockFile(this.#directory.number, name, toMode(mode), timeout), name);
  }

  /** Holders in other processes; those who share a lock leave no record. */
  query() {
    const holders = binding.fileHolders(this.#directory.number);
    if (!Array.isArray(holders)) throw directoryError(holders);
    return holders.map(({ name, pid, threadId, heldMs }) => ({
      name,
      mode: 'exclusive',
      clientId: `node-${pid}-${threadId}`,
      pid,
      threadId,
      heldMs,
    }));
  }

  #conclude(status, name) {
    switch (status) {
      case GRANTED:
      case GRANTED_ABANDONED:
        return new FileHold(status, this.#directory.path, name);
      case TIMED_OUT:
        return null;
      case INTERRUPTED:
        throw threadEnding(describe(placeOf(name)));
      default:
        throw directoryError(binding.takeFileFailure(), placeOf(name));
    }
  }
}

/** By the number of the directory. */
const backends = new Map();

/** The backend of a directory, or of the user's own. Throws what is wrong with it. */
exports.backendFor = (directory) => {
  const opened = binding.openDirectory(directory);
  if (opened.reason !== undefined) throw directoryError(opened);
  let backend = backends.get(opened.number);
  if (backend === undefined) {
    const space = binding.nameSpace(opened.key);
    backend = { scope: 'machine', space, canSteal: false, outer: new Files(opened) };
    backends.set(opened.number, backend);
  }
  return backend;
};
