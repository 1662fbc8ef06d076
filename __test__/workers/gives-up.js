// Takes the mutex with a short timeout, over and over, and counts how often it held and how often it gave up.

const { Mutex } = require('../..');
const { data, doing, finish } = require('../helpers/inside.js');

const mutex = new Mutex(data.buffer, data.byteOffset);

finish(() => {
  const result = { held: 0, gaveUp: 0 };
  for (let round = 0; round < data.rounds; round++) {
    doing(`round ${round} with a timeout of ${data.timeout}`);
    if (mutex.lock(data.timeout)) {
      result.held++;
      mutex.unlock();
    } else {
      result.gaveUp++;
    }
  }
  return result;
});
