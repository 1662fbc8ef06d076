'use strict';

/** A generator of random numbers that costs a nanosecond (xorshift): a function that returns one below `n`. */
function randomBelow(seed) {
  let x = (seed * 0x9e3779b1) | 1;
  return (n) => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) % n;
  };
}

module.exports = { randomBelow };
