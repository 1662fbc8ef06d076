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

  /** From addresses to names. */
  byAddress() {
    const words = this.#words.map((reference) => reference.deref()).filter((word) => word !== undefined);
    return new Map(words.map((word) => [binding.address(word), word.name]));
  }
}

/** Names the lock of a word. */
exports.name = (word, name) => {
  word.name = name;
  thread.named ??= new NamedWords();
  thread.named.add(word);
};

exports.namesByAddress = () => thread.named?.byAddress() ?? new Map();
