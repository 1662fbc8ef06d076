'use strict';
// A process that has loaded what it needs, and says what its first lock of a store took: time, and memory.

const { connect, managerOf } = require('../lib/store-locks');

const { face, store, root } = JSON.parse(process.argv[2]);

async function take() {
  // By hand it is a connection, and a round trip.
  if (face !== 'sablock') return (await connect(store, root)).trip();
  return managerOf(store, root).acquireAsync(`first of ${process.pid}`);
}

async function main() {
  require(root);
  if (store.kind === 'postgres') require('pg');
  if (store.kind === 'redis') require('redis');
  global.gc();
  const before = process.memoryUsage.rss();
  const used = process.cpuUsage();
  const start = performance.now();
  await take();
  const ms = performance.now() - start;
  const { user, system } = process.cpuUsage(used);
  global.gc();
  process.send({ ms, cpu: (user + system) / 1000, megabytes: (process.memoryUsage.rss() - before) / 2 ** 20 }, () =>
    process.exit(),
  );
}

main();
