'use strict';
// A worker that blocks for a name behind all who wait for it already.

const { parentPort, workerData } = require('node:worker_threads');

const { locks } = require(workerData.root);
parentPort.postMessage('asks');
locks.requestSync('behind', () => {});
