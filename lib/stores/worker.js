// The lock worker: a hidden thread that keeps the connections to stores, so that leases are renewed while every event loop of the
// program is blocked, and blocked threads are served.

const { workerData } = require('node:worker_threads');
const { binding, thread } = require('../engine/thread.js');
const { Service } = require('./service.js');

thread.desk = new Service(workerData.sablockLockWorker);
// It lives as long as its owner, which does not wait for it.
binding.keepAlive(true);
binding.serveDesk(workerData.sablockLockWorker);
