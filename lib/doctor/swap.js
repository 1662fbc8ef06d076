// Puts functions in the place of others, and back.

/** Methods that were swapped. */
class Swaps {
  #undo = [];

  /** In the place of `target[name]`: what `make` makes of it, of the same name and length. */
  swap(target, name, make) {
    const before = Object.getOwnPropertyDescriptor(target, name);
    const original = target[name];
    const method = make(original);
    for (const property of ['name', 'length']) {
      Object.defineProperty(method, property, { value: original[property], configurable: true });
    }
    const descriptor = before ?? { configurable: true, enumerable: false, writable: true };
    Object.defineProperty(target, name, { ...descriptor, value: method });
    this.#undo.push(() => {
      // Another function may have taken its place meanwhile.
      if (target[name] !== method) return;
      // Deleted and defined anew, not assigned: V8 inlines a method only if its property was never changed.
      delete target[name];
      if (before !== undefined) Object.defineProperty(target, name, before);
    });
  }

  undo() {
    for (const undo of this.#undo) undo();
    this.#undo = [];
  }
}

exports.Swaps = Swaps;
