// Wrong uses, each of which the compiler must refuse. Compiled, never run.

import {
  AutoResetEvent,
  Barrier,
  BarrierMember,
  BrokenBarrierError,
  Condition,
  DeadlockError,
  type HeldLock,
  type Latch,
  LatchEntry,
  LockAllGuard,
  LockGuard,
  LockManager,
  LockTable,
  layout,
  lockAll,
  lockAllAsync,
  Mutex,
  notify,
  type Once,
  type RwLock,
  RwLockGuard,
  Semaphore,
  SemaphorePermits,
  stats,
  TimeoutError,
  wait,
  waitAsync,
} from 'sablock';

declare const mutex: Mutex;
declare const guard: LockGuard;
declare const table: LockTable;
declare const condition: Condition;
declare const deadlock: DeadlockError;
const { signal } = new AbortController();
const numbers = new Int32Array(new SharedArrayBuffer(8));
const bigints = new BigInt64Array(new SharedArrayBuffer(8));

// @ts-expect-error: no memory
new Mutex();
// @ts-expect-error: no shared memory
new Mutex(new ArrayBuffer(8));
// @ts-expect-error: a view is no buffer
new Mutex(numbers);
// @ts-expect-error: an offset is a number
new Mutex(new SharedArrayBuffer(8), '4');
// @ts-expect-error: no such option
new Mutex(new SharedArrayBuffer(8), 4, { allowMain: true });
// @ts-expect-error: read-only
mutex.byteOffset = 4;
// @ts-expect-error: read-only
mutex.buffer = new SharedArrayBuffer(8);
// @ts-expect-error: read-only
mutex.abandoned = false;
// @ts-expect-error: read-only
Mutex.BYTES = 4;

// @ts-expect-error: a signal is for the asynchronous verbs
mutex.lock({ signal });
// @ts-expect-error: a timeout is a number
mutex.lock('5');
// @ts-expect-error: a timeout is a number
mutex.lockAsync(null);
// @ts-expect-error: a timeout is a number
mutex.lockAsync({ timeout: 5n });
// @ts-expect-error: ref is a boolean
mutex.lockAsync({ ref: 1 });
// @ts-expect-error: a controller is no signal
mutex.lockAsync({ signal: new AbortController() });
// @ts-expect-error: tryLock() does not wait
mutex.tryLock(5);
// @ts-expect-error: nothing to run
mutex.executeLocked();
// @ts-expect-error: the function gets no arguments
mutex.executeLockedSync((token: LockGuard) => token);
// @ts-expect-error: a signal is for the asynchronous verbs
mutex.executeLockedSync(() => 1, { signal });
// @ts-expect-error: a signal is for the asynchronous verbs
mutex.acquire({ signal });
// @ts-expect-error: a name is a string
new Mutex(mutex.buffer, 0, { name: 5 });
// @ts-expect-error: onAbandoned() must be done when it returns
new Mutex(mutex.buffer, 0, { onAbandoned: 'markConsistent' });
// @ts-expect-error: a condition blocks as its mutex may
new Condition(mutex.buffer, 0, { allowMainThread: true });
// @ts-expect-error: enter() takes a callback
mutex.enter();
// @ts-expect-error: leave() takes its token
mutex.leave();
// @ts-expect-error: a mutex is no token
mutex.leave(mutex);
// @ts-expect-error: nothing to dispose of
using _notDisposable = mutex;

// @ts-expect-error: guards come from the mutex
new LockGuard();
// @ts-expect-error: read-only
guard.locked = false;

// @ts-expect-error: no shared memory
new Condition(new ArrayBuffer(8));
// @ts-expect-error: with which mutex?
condition.wait();
// @ts-expect-error: a guard is no mutex
condition.wait(guard);
// @ts-expect-error: a signal is for the asynchronous verbs
condition.wait(mutex, { signal });
// @ts-expect-error: until what?
condition.waitFor(mutex);
// @ts-expect-error: a timeout is no predicate
condition.waitForAsync(mutex, 5);
// @ts-expect-error: a count is a number
condition.notify('all');

declare const event: AutoResetEvent;
declare const latch: Latch;
declare const once: Once;
declare const manager: LockManager;
declare const held: HeldLock;
// @ts-expect-error: a request needs a callback
manager.request('name');
// @ts-expect-error: no such mode
manager.request('name', { mode: 'other' }, () => {});
// @ts-expect-error: a signal is for the asynchronous verbs
manager.acquire('name', { signal });
// @ts-expect-error: perhaps null
manager.requestSync('name', { ifAvailable: true }, (lock) => lock.unlock());
// @ts-expect-error: a manager has no name
new LockManager({ name: 'mine' });
// @ts-expect-error: read-only
held.abandoned = false;
// @ts-expect-error: no shared memory
new AutoResetEvent(new ArrayBuffer(4));
// @ts-expect-error: nothing of an event is in doubt
new AutoResetEvent(mutex.buffer, 0, { onAbandoned: () => {} });
// @ts-expect-error: a signal is for the asynchronous verbs
event.wait({ signal });
// @ts-expect-error: read-only
event.isSet = true;
// @ts-expect-error: a count is a number
latch.add('1');
// @ts-expect-error: entries come from the latch
new LatchEntry();
// @ts-expect-error: what to run?
once.run();
// @ts-expect-error: a signal is for the asynchronous verbs
once.runSync(() => {}, { signal });
// @ts-expect-error: it is told one thing
once.run((notes: { abandoned: string }) => notes);

// @ts-expect-error: bigints for a BigInt64Array
wait(bigints, 0, 0);
// @ts-expect-error: numbers for an Int32Array
wait(numbers, 0, 0n);
// @ts-expect-error: neither an Int32Array nor a BigInt64Array
wait(new Uint32Array(numbers.buffer), 0, 0);
// @ts-expect-error: what to wait for?
wait(numbers, 0);
// @ts-expect-error: neither an Int32Array nor a BigInt64Array
notify(new Float64Array(8));
// @ts-expect-error: the timeout has a place of its own
waitAsync(numbers, 0, 0, { timeout: 5 });
// @ts-expect-error: no such option
waitAsync(numbers, 0, 0, 5, { timeout: 5 });
// @ts-expect-error: the outcome may be no promise
waitAsync(numbers, 0, 0).value.then();

// @ts-expect-error: it takes nothing
stats(true);

// @ts-expect-error: the package makes its errors
new TimeoutError();
// @ts-expect-error: the package makes its errors
new DeadlockError();
// @ts-expect-error: read-only
deadlock.cycle.push({ threadId: 1, byteOffset: 0 });

declare const semaphore: Semaphore;
declare const permits: SemaphorePermits;
declare const barrier: Barrier;

// @ts-expect-error: how many permits?
new Semaphore(numbers.buffer, 0);
// @ts-expect-error: a semaphore has no holder whose end would be told
new Semaphore(new SharedArrayBuffer(8), 0, 1, { onAbandoned: () => {} });
// @ts-expect-error: a number of permits comes first
semaphore.acquire({ timeout: 5 });
// @ts-expect-error: a signal is for the asynchronous verbs
semaphore.acquire(1, { signal });
// @ts-expect-error: tryAcquire() does not wait
semaphore.tryAcquire(1, 5);
// @ts-expect-error: the function gets no arguments
semaphore.execute((permits: SemaphorePermits) => permits);
// @ts-expect-error: read-only
semaphore.available = 4;
// @ts-expect-error: permits come from the semaphore
new SemaphorePermits();
// @ts-expect-error: read-only
permits.count = 4;
// @ts-expect-error: how many parties?
new Barrier(new SharedArrayBuffer(8), 0);
// @ts-expect-error: a signal is for the asynchronous verb
barrier.wait({ signal });
// @ts-expect-error: read-only
barrier.parties = 4;
// @ts-expect-error: members come from the barrier
new BarrierMember();
// @ts-expect-error: the package makes its errors
new BrokenBarrierError();
declare const rwlock: RwLock;
// @ts-expect-error: an RwLock is not locked itself
rwlock.lock();
// @ts-expect-error: read and write are always the same
rwlock.read = rwlock.write;
// @ts-expect-error: guards are made by acquire()
new RwLockGuard();
// @ts-expect-error: the guard of an RwLock has no mutex
rwlock.read.acquire().mutex.unlock();
// @ts-expect-error: only a mutex has enter()
rwlock.write.enter(() => {});
// @ts-expect-error: a condition waits with the write of an RwLock, not with the whole
new Condition(rwlock.buffer, 0).wait(rwlock);
// @ts-expect-error: a table has a length
new LockTable(mutex.buffer, 0);
// @ts-expect-error: the number of a lock comes first
table.lock();
// @ts-expect-error: a signal is for the asynchronous verbs
table.lock(0, { signal });
// @ts-expect-error: no key
table.indexFor({});
// @ts-expect-error: several locks are a list
lockAll(mutex);
// @ts-expect-error: a condition is no lock
lockAll([condition]);
// @ts-expect-error: an RwLock is locked by its read or its write
lockAll([rwlock]);
// @ts-expect-error: a table is locked by its numbers
lockAll([table]);
// @ts-expect-error: permits are not locked
lockAllAsync([semaphore]);
// @ts-expect-error: a signal is for the asynchronous verbs
lockAll([mutex], { signal });
// @ts-expect-error: guards come from lockAll()
new LockAllGuard();
// @ts-expect-error: no class of this package
layout({ map: Map });
// @ts-expect-error: a table has a length
layout({ rows: LockTable });
// @ts-expect-error: a length is a number
layout({ rows: [LockTable, '5'] });
// @ts-expect-error: no such option
layout({ lock: [Mutex, { allowMain: true }] });
// @ts-expect-error: a number of elements
layout({ prices: [Float64Array, '5'] });
