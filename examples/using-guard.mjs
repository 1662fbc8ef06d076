// A guard with `using`: the end of the block unlocks the mutex, also if the block throws. Node.js 24 and later read this file
// as it is; for earlier versions `run.js` compiles it.

import { LockGuard, Mutex } from 'sablock';

const mutex = new Mutex(new SharedArrayBuffer(Mutex.BYTES));
const account = { balance: 100 };

const withdraw = async (amount) => {
  using guard = await mutex.acquireAsync({ timeout: 1000 });
  if (!(guard instanceof LockGuard)) throw new TypeError('acquireAsync() did not return a guard');
  const { balance } = account;
  await new Promise(setImmediate);
  if (balance < amount) throw new RangeError(`Only ${balance} left`);
  account.balance = balance - amount;
};

const results = await Promise.allSettled([withdraw(30), withdraw(80), withdraw(50)]);
const outcomes = results.map(({ status }) => status).join(', ');

console.log(`${outcomes}; ${account.balance} left, mutex ${mutex.isLocked ? 'held' : 'free'}`);
const isRight = outcomes === 'fulfilled, rejected, fulfilled' && account.balance === 20 && !mutex.isLocked;
if (!isRight) process.exitCode = 1;
