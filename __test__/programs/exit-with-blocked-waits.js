// Ends by process.exit(3) while workers are blocked in wait().

const { Worker } = require('node:worker_threads');
const { binding } = require('../../lib/engine/thread.js');

const WORKERS = 3;
const array = new Int32Array(new SharedArrayBuffer(4));
const code = `
  const { workerData: array } = require('node:worker_threads');
  require(${JSON.stringify(require.resolve('../..'))}).wait(array, 0, 0);
`;
for (let count = 0; count < WORKERS; count++) new Worker(code, { eval: true, workerData: array });

const look = () => {
  if (binding.waiting(array, 0) < WORKERS) return setTimeout(look, 1);
  console.log('all wait');
  process.exit(3);
};
look();
