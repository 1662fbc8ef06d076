// Checks and converts what the waiting functions get, step by step as ECMAScript has it for Atomics.wait and its like.
// Names of its abstract operations stand at the functions that do the same.

const { isSharedArrayBuffer } = require('node:util/types');
const { checkNoTimeout } = require('../arguments.js');
const { invalidArgument, outOfRange } = require('../errors.js');

const uncurry = (method) => Function.prototype.call.bind(method);
const prototype = Object.getPrototypeOf(Int32Array.prototype);
const getter = (key) => uncurry(Object.getOwnPropertyDescriptor(prototype, key).get);

// The getters themselves: they see the array, of whatever realm, and not what a user has put on top of it.
const nameOf = getter(Symbol.toStringTag);
const lengthOf = getter('length');
const bufferOf = getter('buffer');
const keysOf = uncurry(prototype.keys);

const ARRAYS = 'an Int32Array or a BigInt64Array';

/** ValidateIntegerTypedArray with waitable true. Returns the length at this moment, before any coercion. */
function checkWaitable(typedArray) {
  const name = nameOf(typedArray);
  if (name !== 'Int32Array' && name !== 'BigInt64Array') throw invalidArgument('typedArray', ARRAYS, typedArray);
  const length = lengthOf(typedArray);
  if (length === 0) checkInBounds(typedArray);
  return length;
}

function checkInBounds(typedArray) {
  try {
    keysOf(typedArray); // it validates its array, and cannot fail otherwise
  } catch {
    throw invalidArgument('typedArray', `${ARRAYS} whose buffer is neither detached nor too small for it`, typedArray);
  }
}

/** ToIntegerOrInfinity; throws what the conversion of an object throws, and a TypeError for symbols and bigints. */
function toInteger(value) {
  const number = Math.trunc(+value);
  return Number.isNaN(number) ? 0 : number;
}

/** ValidateAtomicAccess: the index of an element. */
function toIndex(requestIndex, length) {
  // Most are what they should be.
  if (Number.isInteger(requestIndex) && requestIndex >= 0 && requestIndex < length) return requestIndex;
  const index = toInteger(requestIndex);
  if (index < 0 || index >= length) {
    throw outOfRange('index', `an index of the array, whose length is ${length}`, requestIndex);
  }
  return index + 0; // -0 is 0
}

exports.isShared = (typedArray) => isSharedArrayBuffer(bufferOf(typedArray));

/** The place of a notification: any buffer. */
exports.toIndexForNotify = (typedArray, index) => toIndex(index, checkWaitable(typedArray));

/** The place of a wait: shared memory only, which is checked before the index is looked at. */
exports.toIndexForWait = (typedArray, index) => {
  const length = checkWaitable(typedArray);
  if (!exports.isShared(typedArray)) {
    throw invalidArgument('typedArray', `${ARRAYS} over a SharedArrayBuffer`, typedArray);
  }
  return toIndex(index, length);
};

/** ToInt32, or ToBigInt64: what the element is compared with. */
exports.toExpected = (typedArray, value) =>
  nameOf(typedArray) === 'Int32Array' ? +value | 0 : BigInt.asIntN(64, value);

/** Infinity for ever, zero or less: no wait. */
exports.toLimit = (timeout) => {
  const milliseconds = +timeout;
  if (!Number.isNaN(milliseconds)) return Math.max(milliseconds, 0);
  checkNoTimeout(timeout);
  return Infinity;
};

/** The number of waiters that a notification is for. */
exports.toCount = (count) => (count === undefined ? Infinity : Math.max(toInteger(count), 0));
