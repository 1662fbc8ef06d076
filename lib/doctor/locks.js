// Locks as the doctor knows them: a number for each, and one for its class.

const { typeOf } = require('../engine/names.js');
const { threadId } = require('node:worker_threads');
const { binding } = require('../engine/thread.js');

/** The buffers of locks without names that are in the graph stay: their addresses must not be used again. At most so many. */
const MOST_KEPT = 10_000;
/** The number of names that are known at once. */
const MOST_NAMES = 4_000;
/** The core is told of so many locks at a time that their memory is gone. */
const MOST_GONE = 1_000;
/** The kinds that are held, so that to wait for one is to wait for a holder. */
const HELD = new Set(['Mutex', 'RwLock', 'LockTable', 'Once', 'Semaphore', 'HeldLock']);

class LockInfo {
  #kept = null;
  /** The hold that ended last. */
  last = null;

  /** `numbers` are the lock's own and that of its class. */
  constructor(numbers, address, kind, word) {
    this.id = numbers.id;
    this.class = numbers.class;
    this.address = address;
    this.kind = kind;
    // A name alone has none.
    this.word = word.buffer === undefined ? null : new WeakRef(word);
    this.name = word.name;
    /** Waits for it are those for a holder. */
    this.isLock = HELD.has(kind);
    /** If several hold it at once, none is in the way of the next as long as there is room. */
    this.isOrdered = this.isLock && kind !== 'Semaphore';
  }

  /** It is in the graph: false if there is no room for it. */
  keep(kept) {
    if (this.name !== undefined || this.#kept !== null) return true;
    if (kept.count >= MOST_KEPT) return false;
    this.#kept = this.word?.deref()?.buffer ?? null;
    if (this.#kept === null) return false;
    kept.count += 1;
    kept.buffers.add(this.#kept);
    return true;
  }
}

/** The locks of this thread, by their words. */
class Locks {
  #byWord = new WeakMap();
  #byName = new Map();
  /** The numbers of elements that are waited for, by their buffers and byte offsets. */
  #elements = new WeakMap();
  /** Tells of locks in a buffer that is gone here. */
  #buffers = new FinalizationRegistry((id) => this.#isGone(id));
  #gone = [];
  #isOver = false;
  /** The state of `LockInfo.keep`. */
  kept = { count: 0, buffers: new Set() };

  /** The lock of a view of a primitive's memory, or of a table's. */
  ofWord(word) {
    let info = this.#byWord.get(word);
    if (info === undefined) {
      info = word.table === undefined ? this.#intern(word) : this.#ofRow(word);
      this.#byWord.set(word, info);
    }
    return info;
  }

  /** The lock that has nothing but its name, in what the binding calls a space. */
  ofName(space, name) {
    const key = `${space} ${name}`;
    let info = this.#byName.get(key);
    if (info === undefined) {
      if (this.#byName.size >= MOST_NAMES) this.#forget();
      const numbers = binding.doctorLock(threadId, 'HeldLock', space, undefined, name);
      // No address of memory.
      info = new LockInfo(numbers, 2 ** 50 + numbers.id, 'HeldLock', { name });
      this.#byName.set(key, info);
    }
    return info;
  }

  /** All names: those that are used go on as new ones. */
  #forget() {
    binding.doctorForget(
      threadId,
      Array.from(this.#byName.values(), ({ id }) => id),
    );
    this.#byName.clear();
  }

  /** The lock outside of the process, in the directory of this number. */
  ofFile(directory, name) {
    return this.ofName(binding.nameSpace(directory), name);
  }

  /** The lock for an element that `wait()` or `waitAsync()` waits for, which no lock has told of. */
  ofElement(typedArray, index) {
    const byteOffset = typedArray.byteOffset + index * typedArray.BYTES_PER_ELEMENT;
    const word = new Int32Array(typedArray.buffer, byteOffset, 1);
    const address = binding.address(word);
    const known = this.#elements.get(word.buffer) ?? new Map();
    if (!known.has(byteOffset)) {
      this.#elements.set(word.buffer, known);
      known.set(byteOffset, this.#inMemory('wait()', address, word));
    }
    return new LockInfo(known.get(byteOffset), address, 'wait()', word);
  }

  /** The number of the lock at an address, until the buffer of its word is gone, and that of its class. */
  #inMemory(kind, address, word) {
    const numbers = binding.doctorLock(threadId, kind, address, word.byteOffset, word.name);
    this.#buffers.register(word.buffer, numbers.id);
    return numbers;
  }

  #isGone(id) {
    // A doctor that starts later has other numbers.
    if (this.#isOver) return;
    this.#gone.push(id);
    if (this.#gone.length === MOST_GONE) binding.doctorForget(threadId, this.#gone.splice(0));
  }

  stop() {
    this.#isOver = true;
  }

  #intern(word) {
    const isTable = word.rows !== undefined;
    const address = binding.address(isTable ? new Int32Array(word.buffer, word.byteOffset, 1) : word);
    const kind = isTable ? word.rows.of : typeOf(word);
    return new LockInfo(this.#inMemory(kind, address, word), address, kind, word);
  }

  /** A lock of a table is of the table's class. */
  #ofRow(word) {
    const table = this.ofWord(word.table);
    return new LockInfo(table, binding.address(word), table.kind, word);
  }
}

exports.Locks = Locks;
