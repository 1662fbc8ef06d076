'use strict';
// Loads the entry that it is given, and says so.

const { parentPort, workerData } = require('node:worker_threads');
const { loadEntry } = require('../lib/contenders');

loadEntry(workerData.entry).then(() => parentPort.postMessage('loaded'));
