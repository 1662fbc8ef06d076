// Locks as the doctor knows them: a number for each, and one for its class.

const { typeOf } = require('../engine/names.js');
const { threadId } = require('node:worker_threads');
const { binding } = require('../engine/thread.js');

/**
 * The buffers of locks without names that are in the graph stay: their addresses must not be used again. At most so many, and none
 * beyond so many bytes: a large one alone stays.
 */
const MOST_KEPT = 10_000;
const MOST_BYTES = 2 ** 28;
/** The number of names that are known at once. */
const MOST_NAMES = 4_000;
/** The core is told of so many locks at a time that their memory is gone. */
const MOST_GONE = 1_000;
/** The kinds that are held, so that to wait for one is to wait for a holder. */
const HELD = new Set(['Mutex', 'RwLock', 'LockTable', 'Once', 'Semaphore', 'HeldLock']);

/** A buffer that locks are in. */
class Memory {
  /** The numbers of its locks, by their place, kind and name. */
  numbers = new Map();
  isKept = false;
  #buffer;

  constructor(buffer) {
    this.#buffer = new WeakRef(buffer);
  }

  get buffer() {
    return this.#buffer.deref();
  }

  /** It is to stay: false if there is no room for it, or it is gone. */
  keep(kept) {
    if (this.isKept) return true;
    if (kept.buffers.size >= MOST_KEPT || kept.bytes >= MOST_BYTES) return false;
    const { buffer } = this;
    if (buffer === undefined) return false;
    kept.buffers.add(buffer);
    kept.bytes += buffer.byteLength;
    this.isKept = true;
    return true;
  }
}

class LockInfo {
  /** The hold that ended last. */
  last = null;

  /**
   * `numbers` are the lock's own and that of its class. A lock that is nothing but its name has no memory: its space in the place of
   * an offset.
   */
  constructor(numbers, address, kind, name, memory, place) {
    this.id = numbers.id;
    this.class = numbers.class;
    this.address = address;
    this.kind = kind;
    this.name = name;
    this.memory = memory;
    this.place = place;
    /** Waits for it are those for a holder. */
    this.isLock = HELD.has(kind);
    /** If several hold it at once, none is in the way of the next as long as there is room. */
    this.isOrdered = this.isLock && kind !== 'Semaphore';
  }

  /** Whether its memory is gone: another lock may come to its address. */
  get isGone() {
    return this.memory !== null && this.memory.buffer === undefined;
  }

  /** It is in the graph: false if there is no room for it. */
  keep(kept) {
    return this.name !== undefined || this.memory.keep(kept);
  }
}

/** The locks of this thread, by their words. */
class Locks {
  #byWord = new WeakMap();
  #byName = new Map();
  #memories = new WeakMap();
  /** Tells of a buffer that is gone here. */
  #buffers = new FinalizationRegistry((memory) => this.#isGone(memory));
  #gone = [];
  #isOver = false;
  /** The state of `LockInfo.keep`. */
  kept = { bytes: 0, buffers: new Set() };
  /** Called when a lock may have come to the address of one that is gone. */
  #whenGone;

  constructor(whenGone) {
    this.#whenGone = whenGone;
  }

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
      info = new LockInfo(numbers, 2 ** 50 + numbers.id, 'HeldLock', name, null, space);
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
    const address = binding.address(new Int32Array(typedArray.buffer, byteOffset, 1));
    return this.#inMemory(typedArray.buffer, 'wait()', address, byteOffset, undefined);
  }

  /** The number that a hold has among those which keep each other out: rows of a table are of one number otherwise. */
  gateOf({ info, address }) {
    const { id, kind, name, memory, place } = info;
    return kind === 'LockTable' ? this.#numbersOf(memory, kind, address, place, name).id : id;
  }

  #memoryOf(buffer) {
    let memory = this.#memories.get(buffer);
    if (memory === undefined) {
      this.#whenGone();
      memory = new Memory(buffer);
      this.#memories.set(buffer, memory);
      this.#buffers.register(buffer, memory);
    }
    return memory;
  }

  /** The number of the lock at an address, until its buffer is gone, and that of its class. */
  #numbersOf({ numbers }, kind, address, byteOffset, name) {
    const key = `${kind} ${address} ${name}`;
    let known = numbers.get(key);
    if (known === undefined) {
      known = binding.doctorLock(threadId, kind, address, byteOffset, name);
      numbers.set(key, known);
    }
    return known;
  }

  #inMemory(buffer, kind, address, byteOffset, name) {
    const memory = this.#memoryOf(buffer);
    const numbers = this.#numbersOf(memory, kind, address, byteOffset, name);
    return new LockInfo(numbers, address, kind, name, memory, byteOffset);
  }

  #isGone({ numbers }) {
    // A doctor that starts later has other numbers.
    if (this.#isOver) return;
    this.#whenGone();
    for (const { id } of numbers.values()) this.#gone.push(id);
    if (this.#gone.length >= MOST_GONE) binding.doctorForget(threadId, this.#gone.splice(0));
  }

  stop() {
    this.#isOver = true;
  }

  #intern(word) {
    const isTable = word.rows !== undefined;
    const address = binding.address(isTable ? new Int32Array(word.buffer, word.byteOffset, 1) : word);
    const kind = isTable ? word.rows.of : typeOf(word);
    return this.#inMemory(word.buffer, kind, address, word.byteOffset, word.name);
  }

  /** A lock of a table is of the table's class. */
  #ofRow(word) {
    const table = this.ofWord(word.table);
    return new LockInfo(table, binding.address(word), table.kind, table.name, table.memory, table.place);
  }
}

exports.Locks = Locks;
