// What the lock worker tells the thread that started it, where the program listens: warnings.

const { parentPort } = require('node:worker_threads');

/** A warning of the process. */
exports.warn = (code, message) => parentPort.postMessage({ sablockWarning: { code, message } });
