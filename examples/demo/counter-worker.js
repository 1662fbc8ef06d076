// A worker of the counter demo: waits for the start, then adds one `increments` times.

const { parentPort, workerData } = require('node:worker_threads');
const { createRegion, workerWays } = require('./increments.js');

const { buffer, name, increments } = workerData;
const region = createRegion(buffer);
const addOne = workerWays[name];

parentPort.postMessage('ready');
region.waitForStart();
for (let count = 0; count < increments; count++) addOne(region);
parentPort.postMessage('done');
