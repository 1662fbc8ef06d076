// Locks as the doctor knows them: a number for each, and one for its class.

const { TABLE, typeOf } = require('../engine/names.js');
const { binding, thread } = require('../engine/thread.js');

/** So many holds of a lock get a call site; then each whose number is a power of two. */
const FIRST_SITES = 32;
/** The buffers of locks without names that are in the graph stay: their addresses must not be used again. At most so many. */
const MOST_KEPT = 10_000;

class LockInfo {
  #taken = 0;
  #missing = 0;
  #kept = null;

  constructor(id, address, word, isExclusive) {
    this.id = id;
    this.class = binding.doctorClass(id);
    this.address = address;
    this.isExclusive = isExclusive;
    this.word = new WeakRef(word);
    this.name = word.name;
    this.isNamed = word.name !== undefined;
  }

  /** Whether the hold that begins now is worth a stack. */
  isSampled() {
    const taken = this.#taken++;
    if (this.#missing > 0) {
      this.#missing -= 1;
      return true;
    }
    return taken < FIRST_SITES || (taken & (taken - 1)) === 0;
  }

  /** A hold without a call site was needed: the next ones get one. */
  wantSites() {
    if (this.#missing === 0) this.#missing = FIRST_SITES;
  }

  /** It is in the graph: false if there is no room for it. */
  keep(kept) {
    if (this.isNamed || this.#kept !== null) return true;
    if (kept.count >= MOST_KEPT) return false;
    this.#kept = this.word.deref()?.buffer ?? null;
    if (this.#kept === null) return false;
    kept.count += 1;
    kept.buffers.add(this.#kept);
    return true;
  }
}

/** The locks of this thread, by their words. */
class Locks {
  #byWord = new WeakMap();
  #byObject = new WeakMap();
  #byName = new Map();
  /** What `LockInfo.keep` keeps. */
  kept = { count: 0, buffers: new Set() };

  /** Of a view of a primitive's memory, or of a table's. */
  ofWord(word) {
    let info = this.#byWord.get(word);
    if (info === undefined) {
      info = word.table === undefined ? this.#intern(word) : this.#ofRow(word);
      this.#byWord.set(word, info);
    }
    return info;
  }

  /** Of a lock that has nothing but its name, in what the binding calls a space. */
  ofName(space, name) {
    const key = `${space} ${name}`;
    let info = this.#byName.get(key);
    if (info === undefined) {
      if (this.#byName.size >= MOST_KEPT) this.#byName.clear();
      const id = binding.doctorLock(space, name, 'HeldLock', -1);
      // No address of memory.
      info = new LockInfo(id, 2 ** 50 + id, { name }, true);
      this.#byName.set(key, info);
    }
    return info;
  }

  /** Of one of the package's objects; undefined if it is none. */
  ofObject(object) {
    let info = this.#byObject.get(object);
    if (info === undefined) {
      const word = wordOf(object);
      if (word === undefined) return undefined;
      info = this.ofWord(word);
      this.#byObject.set(object, info);
    }
    return info;
  }

  #intern(word) {
    const isTable = word.kind === TABLE;
    const address = binding.address(isTable ? new Int32Array(word.buffer, word.byteOffset, 1) : word);
    const kind = isTable ? 'LockTable' : typeOf(word);
    const id = binding.doctorLock(address, word.name, kind, word.byteOffset);
    return new LockInfo(id, address, word, kind !== 'Semaphore');
  }

  /** A lock of a table is of the table's class. */
  #ofRow(word) {
    const { id } = this.ofWord(word.table);
    return new LockInfo(id, binding.address(word), word, true);
  }
}

/** The words of one of the package's objects; undefined if it is none, or not whole. */
function wordOf(object) {
  if (typeof object !== 'object' || object === null) return undefined;
  for (
    let prototype = Object.getPrototypeOf(object);
    prototype !== null;
    prototype = Object.getPrototypeOf(prototype)
  ) {
    const type = Object.hasOwn(prototype, 'constructor') ? prototype.constructor : undefined;
    const read = typeof type === 'function' ? thread.words.get(type) : undefined;
    if (read === undefined) continue;
    try {
      return read(object);
    } catch {
      return undefined;
    }
  }
  return undefined;
}

exports.Locks = Locks;
