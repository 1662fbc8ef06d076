'use strict';
// Loads what it is told to, and says so.

const { parentPort, workerData } = require('node:worker_threads');
const { loadEntry } = require('../lib/contenders');

loadEntry(workerData.entry).then(() => parentPort.postMessage('loaded'));
