const FIELDS = 100;

/** A hundred plain numbers in shared memory that are all equal, unless a holder did not see what the last one wrote. */
exports.Record = class Record {
  #fields;

  constructor(buffer, byteOffset) {
    this.#fields = new Float64Array(buffer, byteOffset, FIELDS);
  }

  get version() {
    return this.#fields[0];
  }

  /** Adds one to each number; returns whether all were equal before. */
  rewrite() {
    const version = this.#fields[FIELDS - 1];
    const isWhole = this.#fields.every((field) => field === version);
    for (let index = 0; index < FIELDS; index++) this.#fields[index] = version + 1;
    return isWhole;
  }
};
