// Locks of the machine: what is locked outside of the process is a file, by the kernel. See backend.js, and src/files.

const { AsyncResource } = require('node:async_hooks');
const clock = require('../load/clock.js');
const { binding, thread } = require('../engine/thread.js');
const { describe, threadEnding } = require('../errors.js');
const { placeOf } = require('./errors.js');
const { directoryError, removed, unwritten } = require('./machine-errors.js');

const { Exclusive, Shared } = binding.NameMode;
const { EndedProcess, EndedThread, FenceHigh, FenceLow, HasEnded, Number: NUMBER, Token } = binding.Field;
const { FILE_FAILED, FILE_LEFT, FILE_REMOVED, GRANTED, GRANTED_ABANDONED, INTERRUPTED, TIMED_OUT } = binding;

/** The number of rows of a list that are made in one turn of the event loop. */
const ROWS = 256;

const toMode = (mode) => (mode === 'shared' ? Shared : Exclusive);

/** A file that this thread has locked. */
class FileHold {
  #number;
  #isAbandoned;
  #path;
  #name;

  /** Takes the call of the binding that has just returned this status. */
  constructor(status, path, name, wantsFence) {
    const { record } = thread;
    this.#number = record[NUMBER];
    this.#isAbandoned = status === GRANTED_ABANDONED;
    this.#path = path;
    this.#name = name;
    /** The end inside, if this thread is the first to learn of it: `{ pid, threadId }`, -1 where that is not known. */
    this.ended = record[HasEnded] === 1 ? { pid: record[EndedProcess], threadId: record[EndedThread] } : null;
    record[HasEnded] = 0;
    /** Drawn while the lock was taken, and in the record of the file; null unless it was asked for. */
    this.fence = wantsFence ? (BigInt(record[FenceHigh]) << 32n) | BigInt(record[FenceLow]) : null;
  }

  get fileNumber() {
    return this.#number;
  }

  get abandoned() {
    return this.#isAbandoned;
  }

  /** The descriptors that keep the lock, and cleaners of old files out of its directory. */
  get descriptors() {
    return binding.fileDescriptors(this.#number);
  }

  markConsistent() {
    binding.markFileConsistent(this.#number);
    this.#isAbandoned = false;
  }

  noteIn(isIn) {
    if (binding.noteFileIn(this.#number, isIn) !== GRANTED) {
      throw directoryError(binding.takeFileFailure(), placeOf(this.#name));
    }
  }

  unlock() {
    const status = binding.releaseFile(this.#number);
    if (status === FILE_REMOVED) removed(this.#name, this.#path);
    else if (status === FILE_FAILED) unwritten(this.#name, binding.takeFileFailure());
  }
}

/** A promise for a file. It is an async resource for the tools that show what keeps a process alive. */
class FileWait extends AsyncResource {
  #number;
  #path;
  #name;
  #ref;
  #wantsFence;
  #isCancelled = false;
  #settle;

  constructor(directory, name, mode, timeout, ref, wantsFence, isPart, beside) {
    super('SablockWait');
    this.#path = directory.path;
    this.#name = name;
    this.#ref = ref;
    this.#wantsFence = wantsFence;
    this.promise = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    thread.files ??= new FileWaits();
    binding.lockFileAsync(directory.number, name, mode, wantsFence, isPart);
    this.#number = thread.record[NUMBER];
    thread.files.add(this.#number, this);
    if (ref) thread.keepAlive(true);
    if (timeout === Infinity) return;
    // Whatever this thread does then.
    if (binding.expireFile(this.#number, timeout, beside) === FILE_FAILED) this.settle(FILE_FAILED);
  }

  hasRef() {
    return this.#ref && thread.files.has(this.#number);
  }

  /** It is over, with this status. */
  settle(status) {
    this.#end();
    if (status === FILE_FAILED) {
      this.#settle.reject(directoryError(binding.takeFileFailure(), placeOf(this.#name)));
    } else if (status === FILE_LEFT) {
      this.#settle.resolve(null);
    } else {
      this.#settle.resolve(new FileHold(status, this.#path, this.#name, this.#wantsFence));
    }
  }

  /** Withdraws it, unless it is over. What the kernel has just granted to it is given back before the promise says so. */
  cancel() {
    if (this.#isCancelled || !thread.files.has(this.#number)) return;
    this.#isCancelled = true;
    if (binding.cancelFile(this.#number)) this.settle(FILE_LEFT);
  }

  #end() {
    thread.files.delete(this.#number);
    if (this.#ref) thread.keepAlive(false);
    this.emitDestroy();
  }
}

/** A promise of those who hold names of a directory alone, in other processes. */
class FileList {
  #number;
  #rows = [];
  #settle;

  constructor(directory) {
    this.promise = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    thread.files ??= new FileWaits();
    binding.listFileHolders(directory.number);
    this.#number = thread.record[NUMBER];
    thread.files.add(this.#number, this);
    thread.keepAlive(true);
  }

  /** The directory was read. */
  settle() {
    thread.files.delete(this.#number);
    thread.keepAlive(false);
    this.#take();
  }

  #take() {
    const rows = binding.takeFileHolders(this.#number, ROWS);
    if (!Array.isArray(rows)) {
      this.#settle.reject(directoryError(rows));
    } else if (rows.length === 0) {
      this.#settle.resolve(this.#rows);
    } else {
      for (const { name, pid, threadId, heldMs } of rows) {
        this.#rows.push({ name, mode: 'exclusive', clientId: `node-${pid}-${threadId}`, pid, threadId, heldMs });
      }
      if (rows.length < ROWS) this.#take();
      else clock.setImmediate(() => this.#take());
    }
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
      else if (status === GRANTED || status === GRANTED_ABANDONED) binding.releaseFile(thread.record[NUMBER]);
    }
  }
}

/** The files of one directory. */
class Files {
  #directory;

  constructor(directory) {
    this.#directory = directory;
  }

  tryLock(name, mode, wantsFence = false, isPart = false) {
    const status = binding.tryLockFile(this.#directory.number, name, toMode(mode), false, wantsFence, isPart);
    return this.#conclude(status, name, wantsFence);
  }

  lockIfAvailable(name, mode, wantsFence = false, isPart = false) {
    const status = binding.tryLockFile(this.#directory.number, name, toMode(mode), true, wantsFence, isPart);
    return this.#conclude(status, name, wantsFence);
  }

  lockAsync(name, mode, timeout, ref, wantsFence = false, isPart = false, beside) {
    const wait = new FileWait(this.#directory, name, toMode(mode), timeout, ref, wantsFence, isPart, beside);
    return { promise: wait.promise, cancel: () => wait.cancel() };
  }

  lockBlocking(name, mode, timeout, wantsFence = false, isPart = false) {
    const status = binding.lockFile(this.#directory.number, name, toMode(mode), timeout, wantsFence, isPart);
    return this.#conclude(status, name, wantsFence);
  }

  /** The holder of it alone in another process; null if its record says nothing of that. */
  holderOf(name) {
    return binding.fileHolder(this.#directory.number, name) ?? null;
  }

  /** The processes that share it, where the system shows them. */
  sharersOf(name) {
    return binding.fileSharers(this.#directory.number, name) ?? [];
  }

  /** Holders in other processes; those who share a lock leave no record. */
  query() {
    return new FileList(this.#directory).promise;
  }

  #conclude(status, name, wantsFence) {
    switch (status) {
      case GRANTED:
      case GRANTED_ABANDONED:
        return new FileHold(status, this.#directory.path, name, wantsFence);
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
