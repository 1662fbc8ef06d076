// A worker of the counter page. It is started once and gets jobs: a number of changes of one of the counters. It works on all
// its jobs in turn, some changes at a time, so that a job that comes while others run starts at once.

const { parentPort, workerData } = require('node:worker_threads');
const { createRegion, workerWays } = require('../increments.js');

const TURN = 500;

const progress = new Int32Array(workerData.progress);
const counters = workerData.counters.map(({ name, buffer }) => ({
  region: createRegion(buffer, workerData.stepsOfWork),
  changeCounter: workerWays[name],
}));
const jobs = [];

const turn = () => {
  const job = jobs.shift();
  const { region, changeCounter } = counters[job.counter];
  const changes = Math.min(TURN, job.left);
  for (let change = 0; change < changes; change++) changeCounter(region, job.by);
  Atomics.add(progress, job.counter, changes);
  job.left -= changes;
  if (job.left > 0) jobs.push(job);
  else parentPort.postMessage(job.counter);
  if (jobs.length > 0) setImmediate(turn);
};

parentPort.on('message', ({ counter, by, changes }) => {
  jobs.push({ counter, by, left: changes });
  if (jobs.length === 1) setImmediate(turn);
});
