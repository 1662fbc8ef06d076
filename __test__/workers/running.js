// Counts the milliseconds in which this process runs, in slices; see `__test__/helpers/running.js`.

const { workerData } = require('node:worker_threads');

const SLICE_MS = 10;

setInterval(() => Atomics.add(workerData.cell, 0, SLICE_MS), SLICE_MS);
