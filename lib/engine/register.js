// This thread's register of holds: what it holds that the words of a primitive cannot say (permits, entries, read holds),
// so that it can be given back when the thread ends. The core reads it; see `src/engine/register.rs`.
//
// A slot is two counts, of raw holds and of holds that a guard owns. Fast paths write it in the same expression as the
// compare-exchange on the word:
//
//     if (compareExchange(word, 0, was, now) === was && (slot[1] += 1) !== undefined) return true;
//
// where the second comparison is always true. V8 stops a thread (terminate(), a vm timeout, the end of the stack) at calls only,
// before they act, so at no point is one written and the other not. No comma operator, no call of our own and no getter may
// stand in such an expression.

const { binding, thread } = require('./thread.js');
const { corrupt } = require('./corrupt.js');

/** A chunk of the register: 4 KiB, of which the ends stay unused, so that two threads share no cache line. */
const CHUNK_BYTES = 4096;
const EDGE_BYTES = 128;
const SLOT_BYTES = 8;

/** The slots of this thread: one object for a thread, however often the package is loaded there. */
class Register {
  #chunk = null;
  #next = CHUNK_BYTES;
  /** Offsets in chunks that were given up. */
  #free = [];
  /**
   * By the primitive's address: who uses the slot keeps it, here is a weak reference. After it is collected the entry stays until
   * the slot is given up, or as long as a hold is in it.
   */
  #entries = new Map();
  /** The words of a primitive are kept until its slot is given up: their address must not be used again before. */
  #collected = new FinalizationRegistry((entry) => this.#giveUp(entry));

  /** The two counts of the primitive at `words`. Whoever uses them keeps them. */
  slotFor(words, ask) {
    const address = binding.address(words);
    const known = this.#entries.get(address);
    const counts = known?.counts ?? this.#newCounts();
    if (known?.ask !== ask) {
      // The memory was another primitive's before: nothing of that may be held any more.
      if (counts[0] !== 0 || counts[1] !== 0) throw corrupt(words);
      binding.addSlot(words, ask, counts);
    }
    const used = known?.slot.deref();
    if (used !== undefined) {
      known.ask = ask;
      return used;
    }
    const slot = new Int32Array(counts.buffer, counts.byteOffset, 2);
    const entry = { address, words, ask, counts, slot: new WeakRef(slot) };
    this.#entries.set(address, entry);
    this.#collected.register(slot, entry);
    return slot;
  }

  #newCounts() {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    if (this.#next + SLOT_BYTES > CHUNK_BYTES - EDGE_BYTES) {
      this.#chunk = new SharedArrayBuffer(CHUNK_BYTES);
      this.#next = EDGE_BYTES;
      thread.chunks.push(this.#chunk);
    }
    const counts = new Int32Array(this.#chunk, this.#next, 2);
    this.#next += SLOT_BYTES;
    return counts;
  }

  /** The slot is no longer used. A hold that is still in it stays until the thread ends, or the primitive is used again. */
  #giveUp(entry) {
    const { address, words, ask, counts } = entry;
    // The primitive was used again, and has an entry of its own.
    if (this.#entries.get(address) !== entry || !binding.freeSlot(words, ask)) return;
    this.#entries.delete(address);
    this.#free.push(counts);
  }
}

/** The counts of this thread's holds of the primitive at `words`. */
exports.slotFor = (words, ask) => {
  thread.register ??= new Register();
  return thread.register.slotFor(words, ask);
};
