// Loads the package twice, holds one mutex by each instance, and ends holding them.

const { Mutex } = require('../..');
const { data, finish } = require('../helpers/inside.js');
const { loadAgain } = require('../helpers/load-again.js');

finish(() => {
  const Second = loadAgain().Mutex;
  const [first, second] = data.offsets;
  new Mutex(data.buffer, first).lock();
  new Second(data.buffer, second).lock();
  return {
    seenByBoth: [new Second(data.buffer, first).isHeldByThisThread, new Mutex(data.buffer, second).isHeldByThisThread],
  };
});
