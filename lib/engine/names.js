// The names that this thread gave to its locks. A lock's word carries its name; here is which words have one, for `inspectAll()`.

const { binding, thread } = require('./thread.js');

const FIRST_CLEANING = 64;

/** The words with names, as long as their locks are used: one object for a thread, however often the package is loaded there. */
class NamedWords {
  #words = [];
  #cleanAt = FIRST_CLEANING;

  add(word) {
    this.#words.push(new WeakRef(word));
    if (this.#words.length < this.#cleanAt) return;
    this.#words = this.#words.filter((reference) => reference.deref() !== undefined);
    this.#cleanAt = Math.max(2 * this.#words.length, FIRST_CLEANING);
  }

  /** From classes and addresses to names: has `get(type, address)`. Two primitives may be at one address, as time goes by. */
  byAddress() {
    const words = this.#words.map((reference) => reference.deref()).filter((word) => word !== undefined);
    const tables = words.filter((word) => word.rows !== undefined);
    const keyOf = (type, address) => `${type} ${address}`;
    const names = new Map(
      words
        .filter((word) => word.rows === undefined)
        .map((word) => [keyOf(exports.typeOf(word), binding.address(word)), word.name]),
    );
    const ranges = tables.map(({ buffer, byteOffset, byteLength, rows, name }) => {
      const start = binding.address(new Int32Array(buffer, byteOffset, 1));
      return { start, end: start + byteLength, type: rows.type, name };
    });
    const rowsAt = (type, address) =>
      ranges.find((range) => range.type === type && range.start <= address && address < range.end);
    return { get: (type, address) => names.get(keyOf(type, address)) ?? rowsAt(type, address)?.name };
  }
}

/** Names the lock of a word. */
exports.name = (word, name) => {
  word.name = name;
  thread.named ??= new NamedWords();
  thread.named.add(word);
};

/** The class of the primitive that has this word. */
exports.typeOf = ({ type = thread.plain.type }) => type;
exports.namesByAddress = () => thread.named?.byAddress() ?? { get: () => undefined };
