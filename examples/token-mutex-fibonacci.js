// The Fibonacci series, each number computed in three asynchronous steps: read the pair, add, write the next pair back.
// All computations start at once. Without a mutex their steps mix, and all of them read the same pair. Between `enter` and
// `leave` each computation is the only one that uses the pair.

const { isDeepStrictEqual } = require('node:util');
const { Mutex } = require('sablock');

const EXPECTED = [0, 1, 1, 2, 3, 5, 8];

const computeNext = (pair, done) => {
  setImmediate(() => {
    const [first, second] = pair;
    setImmediate(() => {
      const sum = first + second;
      setImmediate(() => {
        pair[0] = second;
        pair[1] = sum;
        done(first);
      });
    });
  });
};

/** Computes the first numbers of the series, one at a time if there is a mutex. */
const fibonacci = (count, mutex) => {
  const pair = [0, 1];
  const compute = (resolve) => {
    if (mutex === undefined) {
      computeNext(pair, resolve);
      return;
    }
    mutex.enter((token) => {
      computeNext(pair, (number) => {
        mutex.leave(token);
        resolve(number);
      });
    });
  };
  return Promise.all(Array.from({ length: count }, () => new Promise(compute)));
};

exports.fibonacci = fibonacci;

const main = async () => {
  const wrong = await fibonacci(EXPECTED.length);
  const right = await fibonacci(EXPECTED.length, new Mutex(new SharedArrayBuffer(Mutex.BYTES)));
  console.log(`without a mutex: ${wrong.join(', ')}`);
  console.log(`with a mutex:    ${right.join(', ')}`);
  if (!isDeepStrictEqual(right, EXPECTED) || isDeepStrictEqual(wrong, EXPECTED)) process.exitCode = 1;
};

if (require.main === module) main();
