// Locks of the machine: what is locked outside of the process is a file, by the kernel. See backend.js, and src/files.

const clock = require('../load/clock.js');
const { PendingWait } = require('../engine/pending-wait.js');
const { binding, thread } = require('../engine/thread.js');
const { describe, noBackgroundThread, threadEnding } = require('../errors.js');
const { placeOf } = require('./errors.js');
const { directoryError, removed, unwritten } = require('./machine-errors.js');

const { EndedProcess, EndedThread, HasEnded, Number: NUMBER } = binding.Field;
const { FAILED, GRANTED, GRANTED_ABANDONED, INTERRUPTED, PENDING, REMOVED, TIMED_OUT } = binding;

/** The number of rows of a list that are made in one turn of the event loop. */
const ROWS = 256;

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
    this.fence = wantsFence ? thread.fence : null;
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
    if (status === REMOVED) removed(this.#name, this.#path);
    else if (status === FAILED) unwritten(this.#name, binding.takeFileFailure());
  }
}

/** A promise for a file. */
class FileWait extends PendingWait {
  #path;
  #name;
  #wantsFence;
  /** It has ended without the lock, and waits until nothing of it is left in the kernel. */
  #isLeaving = false;

  constructor(directory, name, { mode, ref, fence, isPart = false }, { timeout, beside }) {
    super(undefined, ref);
    this.#path = directory.path;
    this.#name = name;
    this.#wantsFence = fence;
    // Whatever this thread does when the time is over.
    const status = binding.lockFileAsync(directory.number, name, mode, timeout, fence, isPart, beside);
    if (status === PENDING) {
      thread.add(this);
    } else if (status === TIMED_OUT) {
      this.resolve(null);
      this.stopListening();
    } else {
      throw noBackgroundThread(describe(placeOf(name)));
    }
  }

  /** It is over, with this status. */
  settle(status) {
    if (status === TIMED_OUT) {
      this.#leave();
      return;
    }
    const number = thread.record[NUMBER];
    try {
      if (this.#isLeaving) this.resolve(null);
      else if (status === FAILED) this.reject(directoryError(binding.takeFileFailure(), placeOf(this.#name)));
      else this.resolve(new FileHold(status, this.#path, this.#name, this.#wantsFence));
    } catch (error) {
      // For want of stack: what nobody gets is released.
      this.reject(error);
      binding.releaseFile(number);
    }
    this.stopListening();
  }

  /** Withdraws it, unless it is over. What the kernel has just granted to it is given back before the promise says so. */
  cancel() {
    if (!this.#isLeaving && thread.cancel(this)) this.#leave();
  }

  #leave() {
    this.#isLeaving = true;
    if (binding.awaitFileLeft() === PENDING) {
      thread.add(this);
      return;
    }
    this.resolve(null);
    this.stopListening();
  }
}

/** A promise of those who hold names of a directory alone, in other processes. */
class FileList extends PendingWait {
  #number;
  #rows = [];

  constructor(directory) {
    super(undefined, true);
    binding.listFileHolders(directory.number);
    thread.add(this);
  }

  /** The directory was read. */
  settle() {
    this.#number = thread.record[NUMBER];
    this.#take();
    this.stopListening();
  }

  #take() {
    const rows = binding.takeFileHolders(this.#number, ROWS);
    if (!Array.isArray(rows)) {
      this.reject(directoryError(rows));
    } else if (rows.length === 0) {
      this.resolve(this.#rows);
    } else {
      for (const { name, pid, threadId, heldMs } of rows) {
        this.#rows.push({ name, mode: 'exclusive', clientId: `node-${pid}-${threadId}`, pid, threadId, heldMs });
      }
      if (rows.length < ROWS) this.#take();
      else clock.setImmediate(() => this.#take());
    }
  }
}

/** The files of one directory. */
class Files {
  #directory;

  constructor(directory) {
    this.#directory = directory;
  }

  tryLock(name, { mode, fence, isPart = false }) {
    return this.#conclude(binding.tryLockFile(this.#directory.number, name, mode, false, fence, isPart), name, fence);
  }

  lockIfAvailable(name, { mode, fence, isPart = false }) {
    return this.#conclude(binding.tryLockFile(this.#directory.number, name, mode, true, fence, isPart), name, fence);
  }

  lockAsync(name, options, limits) {
    const wait = new FileWait(this.#directory, name, options, limits);
    return { promise: wait.promise, cancel: () => wait.cancel() };
  }

  lockBlocking(name, { mode, fence, isPart = false }, { timeout }) {
    return this.#conclude(binding.lockFile(this.#directory.number, name, mode, timeout, fence, isPart), name, fence);
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
    backend = { scope: 'machine', space, canSteal: false, canShare: true, outer: new Files(opened) };
    backends.set(opened.number, backend);
  }
  return backend;
};
