// What the declarations must accept, answer and refuse. Compiled, never run.

import { Condition, DeadlockError, LockGuard, Mutex, notify, TimeoutError, wait, waitAsync } from 'sablock';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const is = <_ extends true>(): void => {};

const mutex = new Mutex(new SharedArrayBuffer(8), 4, { allowMainThread: true });
const { signal } = new AbortController();

const locked = mutex.lock(5);
const lockedLater = mutex.lockAsync({ timeout: 5, signal, ref: false });
const result = mutex.executeLocked(async () => 'text');
const plainResult = mutex.executeLocked(() => 1, { signal });
const syncResult = mutex.executeLockedSync(() => 1n, { timeout: 5 });
const guard = mutex.acquire();
const maybe = mutex.tryAcquire();
const later = mutex.acquireAsync({ signal });

is<Equal<typeof Mutex.BYTES, 4>>();
is<Equal<typeof Mutex.ALIGN, 4>>();
is<Equal<typeof mutex.buffer, SharedArrayBuffer>>();
is<Equal<typeof mutex.byteOffset, number>>();
is<Equal<typeof locked, boolean>>();
is<Equal<typeof lockedLater, Promise<boolean>>>();
is<Equal<typeof result, Promise<string>>>();
is<Equal<typeof plainResult, Promise<number>>>();
is<Equal<typeof syncResult, bigint>>();
is<Equal<typeof guard, LockGuard>>();
is<Equal<typeof maybe, LockGuard | null>>();
is<Equal<typeof later, Promise<LockGuard>>>();
is<Equal<ReturnType<typeof guard.unlock>, boolean>>();
is<Equal<typeof guard.mutex, Mutex>>();
is<Equal<ReturnType<Mutex['unlock']>, void>>();
is<Equal<Mutex['isLocked'], boolean>>();
is<Equal<Mutex['isHeldByThisThread'], boolean>>();
is<Equal<Mutex['abandoned'], boolean>>();

mutex.enter((token) => mutex.leave(token));
using disposed = mutex.acquire({ timeout: 1 });
disposed satisfies Disposable;

declare const error: Error;
if (error instanceof TimeoutError || error instanceof DeadlockError) error satisfies Error;

const waiter = mutex.inspect().waiters[0];
if (waiter) is<Equal<typeof waiter.kind, 'blocking' | 'async'>>();
is<Equal<ReturnType<Mutex['inspect']>['ownerThreadId'], number | null>>();

const condition = new Condition(new SharedArrayBuffer(8), 4);
is<Equal<ReturnType<typeof condition.wait>, boolean>>();
is<Equal<ReturnType<typeof condition.waitForAsync>, Promise<boolean>>>();
condition.waitFor(mutex, () => 1, { timeout: 5 });
condition.waitAsync(mutex, { signal, ref: false });

const numbers = new Int32Array(new SharedArrayBuffer(8));
const bigints = new BigInt64Array(numbers.buffer);
const waited = wait(numbers, 0, 0, 5);
is<Equal<typeof waited, 'ok' | 'not-equal' | 'timed-out'>>();
wait(bigints, 0, 0n);
is<Equal<ReturnType<typeof notify>, number>>();
notify(bigints);
const pending = waitAsync(numbers, 0, 0, Number.NaN, { signal, ref: false });
if (pending.async) is<Equal<typeof pending.value, Promise<'ok' | 'timed-out'>>>();
else is<Equal<typeof pending.value, 'not-equal' | 'timed-out'>>();
// @ts-expect-error: bigints for a BigInt64Array
wait(bigints, 0, 0);

// @ts-expect-error: no shared memory
new Mutex(new ArrayBuffer(8));
// @ts-expect-error: a signal is for the asynchronous verbs
mutex.lock({ signal });
// @ts-expect-error: a timeout is a number
mutex.lock('5');
// @ts-expect-error: a timeout is a number
mutex.lockAsync(null);
// @ts-expect-error: acquire() takes options
mutex.acquire(5);
// @ts-expect-error: ref is a boolean
mutex.lockAsync({ ref: 1 });
// @ts-expect-error: nothing to run
mutex.executeLocked();
// @ts-expect-error: leave() takes its token
mutex.leave();
// @ts-expect-error: read-only
mutex.byteOffset = 4;
// @ts-expect-error: guards come from the mutex
new LockGuard();
