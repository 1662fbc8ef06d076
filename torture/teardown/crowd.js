// A number of workers that have all come to where their role leads them.

const { setTimeout: sleep } = require('node:timers/promises');
const { join } = require('node:path');
const { Worker } = require('node:worker_threads');

exports.Crowd = class Crowd {
  workers = [];
  #memory;
  #hasLocks;

  constructor(memory, hasLocks) {
    this.#memory = memory;
    this.#hasLocks = hasLocks;
  }

  add(role) {
    const workerData = { memory: this.#memory, role, hasLocks: this.#hasLocks };
    const worker = new Worker(join(__dirname, 'worker.js'), { workerData });
    worker.ended = new Promise((resolve, reject) => {
      worker.on('exit', resolve);
      worker.on('error', reject);
    });
    this.workers.push(worker);
  }

  /** Until all have said that they are there, and `isSettled` agrees. */
  async gather(isSettled = () => true) {
    const arrived = new Int32Array(this.#memory, 4, 1);
    while (Atomics.load(arrived, 0) < this.workers.length || !isSettled()) await sleep(2);
  }
};
