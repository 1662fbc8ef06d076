// Places for several primitives and typed arrays in one buffer: sizes and alignment are computed, not counted by hand.

const { isSharedArrayBuffer } = require('node:util/types');
const { invalidArgument, notShared, outOfRange } = require('../errors.js');

const EXPECTED = 'a class of this package or of typed arrays, or an array that begins with one';

/** A key that is an array index. */
const INDEX = /^(?:0|[1-9]\d{0,9})$/;

const alignUp = (offset, alignment) => Math.ceil(offset / alignment) * alignment;

/** Whether it is a class of typed arrays, of whatever realm: all of them inherit this getter. */
function isTypedArray({ prototype, BYTES_PER_ELEMENT }) {
  if (BYTES_PER_ELEMENT === undefined) return false;
  for (let each = prototype; each != null; each = Object.getPrototypeOf(each)) {
    if (Object.getOwnPropertyDescriptor(each, Symbol.toStringTag)?.get !== undefined) return true;
  }
  return false;
}

function toField(name, field) {
  const [type, ...args] = Array.isArray(field) ? field : [field];
  if (typeof type !== 'function') throw invalidArgument(`fields.${name}`, EXPECTED, field);
  if (isTypedArray(type)) return typedArray(name, type, args);
  const { ALIGN: alignment, BYTES } = type;
  if (!Number.isInteger(alignment) || !Number.isInteger(BYTES)) {
    throw invalidArgument(`fields.${name}`, EXPECTED, field);
  }
  // A table takes more the longer it is.
  const bytes = typeof type.bytes === 'function' ? type.bytes(...args) : BYTES;
  return { name, bytes, alignment, create: (buffer, byteOffset) => new type(buffer, byteOffset, ...args) };
}

function typedArray(name, type, [length = 1]) {
  const { BYTES_PER_ELEMENT } = type;
  const what = `fields.${name}[1]`;
  if (typeof length !== 'number') throw invalidArgument(what, 'a number of elements', length);
  if (!Number.isSafeInteger(length) || length < 0) throw outOfRange(what, 'a number of elements, 0 or more', length);
  return {
    name,
    bytes: length * BYTES_PER_ELEMENT,
    alignment: BYTES_PER_ELEMENT,
    create: (buffer, byteOffset) => new type(buffer, byteOffset, length),
  };
}

/** The places of fields in a buffer. */
class Layout {
  #fields = [];
  #alignment = 4;
  #byteLength = 0;

  constructor(fields) {
    for (const [name, value] of Object.entries(fields)) {
      // JavaScript puts such keys before all others, whatever order they were written in.
      if (INDEX.test(name)) throw invalidArgument('fields', 'an object whose keys are no array indices', name);
      const field = toField(name, value);
      const byteOffset = alignUp(this.#byteLength, field.alignment);
      this.#fields.push({ ...field, byteOffset });
      this.#byteLength = byteOffset + field.bytes;
      this.#alignment = Math.max(this.#alignment, field.alignment);
    }
    // Another may follow.
    this.#byteLength = alignUp(this.#byteLength, this.#alignment);
  }

  get byteLength() {
    return this.#byteLength;
  }

  create() {
    return new SharedArrayBuffer(this.#byteLength);
  }

  on(buffer, byteOffset = 0) {
    if (!isSharedArrayBuffer(buffer)) throw notShared(buffer);
    if (typeof byteOffset !== 'number') throw invalidArgument('byteOffset', 'a number', byteOffset);
    if (!Number.isInteger(byteOffset) || byteOffset < 0 || byteOffset % this.#alignment !== 0) {
      throw outOfRange('byteOffset', `a multiple of ${this.#alignment}, 0 or more`, byteOffset);
    }
    if (byteOffset + this.#byteLength > buffer.byteLength) {
      const room = `${this.#byteLength} bytes or more before the end of the ${buffer.byteLength} bytes`;
      throw outOfRange('byteOffset', room, byteOffset);
    }
    return Object.fromEntries(
      this.#fields.map(({ name, byteOffset: at, create }) => [name, create(buffer, byteOffset + at)]),
    );
  }
}

/** Places for the fields, in the order given. */
exports.layout = (fields) => {
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) {
    throw invalidArgument('fields', 'an object of classes by name', fields);
  }
  return new Layout(fields);
};
