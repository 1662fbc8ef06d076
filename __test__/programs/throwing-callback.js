// Throws in two callbacks of enter(), one that was called without waiting and one that had to wait, and prints what
// became of the errors and of the holds. With the argument `unheard`, nobody listens to the first error.

const { Mutex } = require('../..');

const mutex = new Mutex(new SharedArrayBuffer(4));
const seen = { uncaught: [], origins: [], wasHeld: [] };
const tokens = [];

if (process.argv[2] !== 'unheard') {
  process.on('uncaughtException', (error, origin) => {
    seen.uncaught.push(error.message);
    seen.origins.push(origin);
    setImmediate(() => {
      seen.wasHeld.push(tokens[0].locked && mutex.isHeldByThisThread);
      mutex.leave(tokens.shift());
      if (seen.uncaught.length === 2) console.log(JSON.stringify({ ...seen, isLocked: mutex.isLocked }));
    });
  });
}

mutex.enter((token) => {
  tokens.push(token);
  throw new Error('Thrown in a callback');
});
mutex.enter((token) => {
  tokens.push(token);
  throw new Error('Thrown in a waiting callback');
});
