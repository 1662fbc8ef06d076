// A mutex of the arena as a lock of a table: the same word, by the table's verbs.

/** Has the verbs of a Mutex. */
class TableFace {
  #table;
  #index;

  constructor(table, index) {
    this.#table = table;
    this.#index = index;
    /** For those who want an object. */
    this.lockable = table.at(index);
  }

  lock(timeout) {
    return this.#table.lock(this.#index, timeout);
  }

  lockAsync(options) {
    return this.#table.lockAsync(this.#index, options);
  }

  tryLock() {
    return this.#table.tryLock(this.#index);
  }

  unlock() {
    this.#table.unlock(this.#index);
  }

  acquire(options) {
    return this.#table.acquire(this.#index, options);
  }

  acquireAsync(options) {
    return this.#table.acquireAsync(this.#index, options);
  }

  tryAcquire() {
    return this.#table.tryAcquire(this.#index);
  }

  executeLocked(fn, options) {
    return this.#table.executeLocked(this.#index, fn, options);
  }

  executeLockedSync(fn, options) {
    return this.#table.executeLockedSync(this.#index, fn, options);
  }

  enter(callback) {
    this.lockable.enter(callback);
  }

  leave(token) {
    this.lockable.leave(token);
  }

  inspect() {
    return this.#table.inspect(this.#index);
  }

  markConsistent() {
    this.lockable.markConsistent();
  }

  get buffer() {
    return this.#table.buffer;
  }

  get byteOffset() {
    return this.lockable.byteOffset;
  }

  get isLocked() {
    return this.lockable.isLocked;
  }

  get isHeldByThisThread() {
    return this.#table.isHeldByThisThread(this.#index);
  }

  get abandoned() {
    return this.lockable.abandoned;
  }
}

exports.TableFace = TableFace;
/** Returns what the functions take that want a lock. */
exports.lockableOf = (face) => face.lockable ?? face;
