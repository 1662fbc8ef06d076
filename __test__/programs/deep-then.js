// Calls lockAllAsync() without time at the last depths before the stack overflows, while a patched then() needs far more stack than the
// package. Prints how many of the promises were rejected, and the number of uncaught errors.

const { lockAllAsync, Mutex } = require('../..');
const { atDepth } = require('../helpers/stack.js');

const DEPTHS = 500;
/** More frames than the package has. */
const FRAMES = 300;

const mutex = new Mutex(new SharedArrayBuffer(4), 0, { allowMainThread: true });
const { then } = Promise.prototype;
const result = { rejected: 0, uncaught: 0 };

process.on('uncaughtException', () => {
  result.uncaught += 1;
});
// A promise that the end of the stack kept from its caller is no subject here.
process.on('unhandledRejection', () => {});

const dive = (frames, act) => (frames === 0 ? act() : dive(frames - 1, act));

function deepThen(...args) {
  return dive(FRAMES, () => then.apply(this, args));
}

const patch = (value) =>
  Object.defineProperty(Promise.prototype, 'then', { value, writable: true, configurable: true });

const main = async () => {
  mutex.lock();
  // Functions that were never called need far more stack, to be compiled.
  for (let count = 0; count < 3; count++) await lockAllAsync([mutex], 0).catch(() => {});
  for (let depth = 0; depth < DEPTHS; depth++) {
    patch(deepThen);
    const outcome = atDepth(() => lockAllAsync([mutex], 0), depth);
    patch(then);
    await outcome?.value.catch(() => {
      result.rejected += 1;
    });
    await new Promise(setImmediate);
  }
  mutex.unlock();
  console.log(JSON.stringify(result));
};

main();
