// The hash by which a LockTable finds the lock of a key: MurmurHash3 (x86, 32 bits) of the key's text, in UTF-16 code units of
// two bytes, the low one first. The seed is 0 for a string and 1 for a number or bigint. The text of an integer is its decimal
// digits; that of another number is what `String` makes of it. It is public, and never changes: other programs may rely on it.

const { invalidArgument } = require('../errors.js');

const { imul } = Math;
const C1 = 0xcc9e2d51;
const C2 = 0x1b873593;
const STRING_SEED = 0;
const NUMBER_SEED = 1;

const rotate = (value, bits) => (value << bits) | (value >>> (32 - bits));
const scramble = (block) => imul(rotate(imul(block, C1), 15), C2);

function murmur3(text, seed) {
  const { length } = text;
  let hash = seed;
  let at = 0;
  for (; at + 1 < length; at += 2) {
    const block = text.charCodeAt(at) | (text.charCodeAt(at + 1) << 16);
    hash = (imul(rotate(hash ^ scramble(block), 13), 5) + 0xe6546b64) | 0;
  }
  if (at < length) hash ^= scramble(text.charCodeAt(at));
  hash ^= 2 * length;
  hash = imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** A number and the bigint of the same value have the same text; so have 0 and -0. */
function textOf(number) {
  return Number.isInteger(number) && !Number.isSafeInteger(number) ? String(BigInt(number)) : String(number);
}

/** From a key to 32 bits; throws for what is no key. */
exports.hashOf = (key) => {
  switch (typeof key) {
    case 'string':
      return murmur3(key, STRING_SEED);
    case 'number':
      return murmur3(textOf(key), NUMBER_SEED);
    case 'bigint':
      return murmur3(String(key), NUMBER_SEED);
    default:
      throw invalidArgument('key', 'a string, a number or a bigint', key);
  }
};

exports.murmur3 = murmur3;
