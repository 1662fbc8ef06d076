// Transfers between the accounts of a table with a million rows, by workers and the main thread at once. Each account has a lock
// of four bytes; a transfer locks both of its accounts, in whatever order they are named. The sum stays.

const { once } = require('node:events');
const { isMainThread, Worker, workerData } = require('node:worker_threads');
const { LockTable, layout } = require('sablock');

const ACCOUNTS = 1_000_000;
/** Most transfers are among these, so that threads meet. */
const BUSY = 8;
const WORKERS = 3;
const TRANSFERS = 2000;
const START = 100;

const bank = layout({ locks: [LockTable, ACCOUNTS], balances: [Int32Array, ACCOUNTS] });

/** Two different accounts, named as users name them. */
const pick = () => {
  const among = Math.random() < 0.9 ? BUSY : ACCOUNTS;
  const from = Math.floor(Math.random() * among);
  return [from, (from + 1 + Math.floor(Math.random() * (among - 1))) % among];
};

const move = (balances, from, to) => {
  const amount = Math.floor(Math.random() * 10);
  if (balances[from] < amount) return;
  balances[from] -= amount;
  balances[to] += amount;
};

const runWorker = ({ memory }) => {
  const { locks, balances } = bank.on(memory);
  for (let count = 0; count < TRANSFERS; count++) {
    const [from, to] = pick();
    const guard = locks.lockAll([from, to]);
    move(balances, from, to);
    guard.unlock();
  }
};

const runMain = async () => {
  const memory = bank.create();
  const { locks, balances } = bank.on(memory);
  balances.fill(START);
  const workers = Array.from({ length: WORKERS }, () => new Worker(__filename, { workerData: { memory } }));
  const ends = Promise.all(workers.map((worker) => once(worker, 'exit')));
  for (let count = 0; count < TRANSFERS; count++) {
    const [from, to] = pick();
    const guard = await locks.lockAllAsync([from, to]);
    move(balances, from, to);
    guard.unlock();
  }
  await ends;
  let sum = 0;
  let lowest = START;
  for (const balance of balances) {
    sum += balance;
    lowest = Math.min(lowest, balance);
  }
  const isRight = sum === ACCOUNTS * START && lowest >= 0;
  console.log(`${(WORKERS + 1) * TRANSFERS} transfers among ${ACCOUNTS} accounts: ${sum} in all, none below ${lowest}`);
  if (!isRight) process.exitCode = 1;
};

if (isMainThread) runMain();
else runWorker(workerData);
