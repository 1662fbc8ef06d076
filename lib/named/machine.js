// Locks of the machine: what is locked outside of the process is a file, by the kernel. See backend.js, and src/files.

const { OuterWait } = require('../engine/outer-wait.js');
const { binding, isGranted, thread } = require('../engine/thread.js');
const { describe, threadEnding } = require('../errors.js');
const { placeOf } = require('./errors.js');
const { directoryError, removed, unwritten } = require('./machine-errors.js');
const { readRows } = require('./rows.js');

const { Shared } = binding.NameMode;
const { EndedProcess, EndedThread, HasEnded, Number: NUMBER } = binding.Field;
const { FAILED, GRANTED, GRANTED_ABANDONED, INTERRUPTED, PENDING, REMOVED, TIMED_OUT } = binding;

/** A file that this thread has locked. */
class FileHold {
  /** By which the binding knows it. */
  number;
  abandoned;
  #path;
  #name;

  /** Takes the call of the binding that has just returned this status. */
  constructor(status, path, name, wantsFence) {
    const { record } = thread;
    this.number = record[NUMBER];
    this.abandoned = status === GRANTED_ABANDONED;
    this.#path = path;
    this.#name = name;
    /** The end inside, if this thread is the first to learn of it: `{ pid, threadId }`, -1 where that is not known. */
    this.ended = record[HasEnded] === 1 ? { pid: record[EndedProcess], threadId: record[EndedThread] } : null;
    record[HasEnded] = 0;
    /** Drawn while the lock was taken, and in the record of the file; null unless it was asked for. */
    this.fence = wantsFence ? thread.fence : null;
  }

  /** The descriptors that keep the lock, and cleaners of old files out of its directory. */
  get descriptors() {
    return binding.fileDescriptors(this.number);
  }

  markConsistent() {
    binding.markConsistent(this.number);
    this.abandoned = false;
  }

  noteIn(isIn) {
    if (binding.noteIn(this.number, isIn) !== GRANTED) {
      throw directoryError(binding.takeTold(), placeOf(this.#name));
    }
  }

  unlock() {
    const status = binding.releaseHeld(this.number, false);
    if (status === REMOVED) removed(this.#name, this.#path);
    else if (status === FAILED) unwritten(this.#name, binding.takeTold());
  }
}

/** A promise for a file. */
class FileWait extends OuterWait {
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
    this.begin(binding.lockFileAsync(directory.number, name, mode, timeout, fence, isPart, beside), name);
  }

  /** It is over, with this status. */
  settle(status) {
    if (status === TIMED_OUT) this.#leave();
    else if (this.#isLeaving) this.end(null);
    else super.settle(status);
  }

  conclude(status) {
    return new FileHold(status, this.#path, this.#name, this.#wantsFence);
  }

  errorOf(told) {
    return directoryError(told, placeOf(this.#name));
  }

  /** Withdraws it, unless it is over. What the kernel has just granted to it is given back before the promise says so. */
  cancel() {
    if (!this.#isLeaving && thread.cancel(this)) this.#leave();
  }

  #leave() {
    this.#isLeaving = true;
    if (binding.awaitLeft() === PENDING) thread.add(this);
    else this.end(null);
  }
}

/** A promise of those who hold names of a directory alone, in other processes. */
class FileList extends OuterWait {
  constructor(directory) {
    super(undefined, true);
    this.begin(binding.listFileHolders(directory.number));
  }

  async conclude() {
    const holders = [];
    await readRows(binding.takeTold(), (name, pid, threadId, heldMs) => {
      holders.push({ name, mode: 'exclusive', clientId: `node-${pid}-${threadId}`, pid, threadId, heldMs });
    });
    return holders;
  }

  errorOf(told) {
    return directoryError(told);
  }
}

/** The files of one directory. */
class Files {
  #directory;

  constructor(directory) {
    this.#directory = directory;
  }

  tryLock(name, options) {
    return this.#lock(name, options, 0, false);
  }

  lockIfAvailable(name, options) {
    return this.#lock(name, options, 0, true);
  }

  lockAsync(name, options, limits) {
    const wait = new FileWait(this.#directory, name, options, limits);
    return { promise: wait.promise, cancel: () => wait.cancel() };
  }

  lockBlocking(name, options, { timeout }) {
    return this.#lock(name, options, timeout, false);
  }

  /** The holder of it alone in another process; null if its record says nothing of that. */
  holderOf(name) {
    return binding.fileHolders(this.#directory.number, name)?.[0] ?? null;
  }

  /** The processes that share it, where the system shows them. */
  sharersOf(name) {
    return binding.fileHolders(this.#directory.number, name, Shared)?.map(({ pid }) => pid) ?? [];
  }

  /** Holders in other processes; those who share a lock leave no record. */
  query() {
    return new FileList(this.#directory).promise;
  }

  #lock(name, { mode, fence, isPart = false }, timeout, ifAvailable) {
    const { number, path } = this.#directory;
    const status = binding.lockFile(number, name, mode, timeout, fence, isPart, ifAvailable);
    if (isGranted(status)) return new FileHold(status, path, name, fence);
    switch (status) {
      case TIMED_OUT:
        return null;
      case INTERRUPTED:
        throw threadEnding(describe(placeOf(name)));
      default:
        throw directoryError(binding.takeTold(), placeOf(name));
    }
  }
}

/** The backend of a directory, or of the user's own. Throws what is wrong with it. */
exports.backendFor = (directory) => {
  const opened = binding.openDirectory(directory);
  if (opened === undefined || opened.reason !== undefined) throw directoryError(opened);
  const space = binding.nameSpace(opened.number);
  return { scope: 'machine', space, canSteal: false, canShare: true, outer: new Files(opened) };
};
