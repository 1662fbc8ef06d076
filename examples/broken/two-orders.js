// Broken on purpose: two workers transfer between the same two accounts, and each locks the account that it takes from first.
// Here they run one after the other, and nothing happens. If they ever run at the same time, they can wait for each other.
//
//     node --require sablock/doctor two-orders.js

const { once } = require('node:events');
const { Worker, isMainThread, workerData } = require('node:worker_threads');
const { Mutex } = require('sablock');

function transfer(from, to) {
  from.lock();
  to.lock();
  to.unlock();
  from.unlock();
}

function payRent({ alice, bob }) {
  transfer(alice, bob);
}

function payBack({ alice, bob }) {
  transfer(bob, alice);
}

async function main() {
  const memory = new SharedArrayBuffer(8);
  for (const job of ['payRent', 'payBack']) {
    await once(new Worker(__filename, { workerData: { memory, job } }), 'exit');
  }
  console.log('all paid');
}

if (isMainThread) {
  main();
} else {
  const { memory, job } = workerData;
  const accounts = {
    alice: new Mutex(memory, 0, { name: 'alice' }),
    bob: new Mutex(memory, 4, { name: 'bob' }),
  };
  if (job === 'payRent') payRent(accounts);
  else payBack(accounts);
}
