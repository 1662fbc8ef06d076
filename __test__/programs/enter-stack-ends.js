// Calls enter() at the last depths before the stack overflows, in frames of many sizes, since the stack has to end between two calls
// of it. Prints at how many it threw, and after how many the mutex stayed held, or the callback never ran.

const { Mutex } = require('../..');
const { atDepth } = require('../helpers/stack.js');

const PADDINGS = 9;
const DEPTHS = 12;
const ROUNDS = 60;
/** Calls before each round: V8 compiles functions anew, with other frames, the more often they are called. */
const WARM_UPS = 40;

const result = { called: 0, failed: 0, leaked: 0, silent: 0 };

const enter = async (call) => {
  const mutex = new Mutex(new SharedArrayBuffer(4));
  let hasRun = false;
  const hasReturned = call(() => {
    mutex.enter((token) => {
      hasRun = true;
      mutex.leave(token);
    });
    return true;
  });
  await new Promise(setImmediate);
  result.called += 1;
  if (!hasReturned) result.failed += 1;
  if (mutex.isLocked) result.leaked += 1;
  if (hasReturned && !hasRun) result.silent += 1;
};

const main = async () => {
  for (let round = 0; round < ROUNDS; round++) {
    for (let count = 0; count < WARM_UPS; count++) await enter((act) => act());
    for (let padding = 0; padding < PADDINGS; padding++) {
      for (let depth = 0; depth < DEPTHS; depth++) await enter((act) => atDepth(act, depth, padding));
    }
  }
  console.log(JSON.stringify(result));
};

main();
