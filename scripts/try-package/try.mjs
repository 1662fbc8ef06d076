import assert from 'node:assert';
import { DeadlockError, LockGuard, Mutex, TimeoutError } from 'sablock';

const mutex = new Mutex(new SharedArrayBuffer(Mutex.BYTES), 0, { allowMainThread: true });
assert(mutex.lock());
assert.throws(() => mutex.lock(), DeadlockError);
assert.throws(() => mutex.acquire({ timeout: 1 }), TimeoutError);
mutex.unlock();
assert((await mutex.acquireAsync()) instanceof LockGuard);
console.log('The package works: import.');
