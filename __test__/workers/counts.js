// Increments two counters: a plain one under the mutex, another atomically.

const { Mutex } = require('../..');
const { data, doing, finish } = require('../helpers/inside.js');

const cells = new Int32Array(data.buffer, 0, 2);
const mutex = new Mutex(data.buffer, data.mutexOffset);

finish(() => {
  doing(`${data.increments} increments`);
  for (let count = 0; count < data.increments; count++) {
    mutex.lock();
    cells[0]++;
    mutex.unlock();
    Atomics.add(cells, 1, 1);
  }
});
