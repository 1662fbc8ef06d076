// The declarations must accept, return and refuse this, member by member. Compiled, never run.

import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel';
// biome-ignore lint/style/useNodejsImportProtocol: both names are the subject
import * as unprefixed from 'diagnostics_channel';
import type * as sablock from 'sablock';
import {
  type AsyncLockOptions,
  type AsyncPermitsOptions,
  AutoResetEvent,
  Barrier,
  type BarrierInspection,
  type BarrierMember,
  BrokenBarrierError,
  type CloseOptions,
  Condition,
  type ConditionOptions,
  DeadlockError,
  type DiagnosticsMessages,
  Exchanger,
  type HeldLock,
  type HeldLocks,
  type HoldMode,
  inspectAll,
  Latch,
  type LatchEntry,
  type Layout,
  type LockAllGuard,
  type Lockable,
  type LockGuard,
  LockManager,
  type LockManagerSnapshot,
  type LockOptions,
  LockTable,
  type LockTableOptions,
  layout,
  lockAll,
  lockAllAsync,
  locks,
  ManualResetEvent,
  Mutex,
  type MutexHolder,
  type MutexInspection,
  type MutexOptions,
  type MutexWaiter,
  notify,
  Once,
  type OnceNotes,
  type PermitsOptions,
  type PrimitiveInspection,
  type PrimitiveOptions,
  type QueuedMutexInspection,
  type QueuedPrimitiveInspection,
  RwLock,
  type RwLockGuard,
  type RwLockHolder,
  type RwLockInspection,
  type RwLockOptions,
  type RwLockWaiter,
  Semaphore,
  type SemaphoreInspection,
  type SemaphoreOptions,
  type SemaphorePermits,
  type Stats,
  type SynchronizerOptions,
  stats,
  type Timeout,
  TimeoutError,
  type WaitAsyncOptions,
  type WaitAsyncResult,
  type WaitResult,
  wait,
  waitAsync,
} from 'sablock';
import type { Equal } from './equal.js';

const is = <_ extends true>(): void => {};

// The members, all of them: who adds one adds it here, and a use of it below.
is<
  Equal<
    Exclude<keyof typeof sablock, 'default' | 'module.exports'>,
    | 'AutoResetEvent'
    | 'Barrier'
    | 'BarrierMember'
    | 'BrokenBarrierError'
    | 'Exchanger'
    | 'Condition'
    | 'DeadlockError'
    | 'HeldLock'
    | 'HeldLocks'
    | 'inspectAll'
    | 'Latch'
    | 'LatchEntry'
    | 'layout'
    | 'lockAll'
    | 'lockAllAsync'
    | 'LockAllGuard'
    | 'LockGuard'
    | 'LockLostError'
    | 'LockManager'
    | 'locks'
    | 'LockTable'
    | 'ManualResetEvent'
    | 'Mutex'
    | 'notify'
    | 'Once'
    | 'RwLock'
    | 'RwLockGuard'
    | 'Semaphore'
    | 'SemaphorePermits'
    | 'stats'
    | 'TimeoutError'
    | 'wait'
    | 'waitAsync'
  >
>();
is<Equal<keyof typeof Mutex, 'prototype' | 'BYTES' | 'ALIGN'>>();
is<
  Equal<
    keyof Mutex,
    | 'abandoned'
    | 'acquire'
    | 'acquireAsync'
    | 'buffer'
    | 'byteOffset'
    | 'enter'
    | 'executeLocked'
    | 'executeLockedSync'
    | 'inspect'
    | 'isHeldByThisThread'
    | 'isLocked'
    | 'leave'
    | 'lock'
    | 'lockAsync'
    | 'markConsistent'
    | 'name'
    | 'tryAcquire'
    | 'tryLock'
    | 'unlock'
  >
>();
is<Equal<keyof LockGuard, 'abandoned' | 'lock' | 'locked' | 'mutex' | 'unlock' | typeof Symbol.dispose>>();
is<Equal<keyof typeof Semaphore, 'prototype' | 'BYTES' | 'ALIGN' | 'MAX_PERMITS'>>();
is<
  Equal<
    keyof Semaphore,
    | 'acquire'
    | 'acquireAsync'
    | 'available'
    | 'buffer'
    | 'byteOffset'
    | 'execute'
    | 'executeSync'
    | 'fair'
    | 'inspect'
    | 'name'
    | 'release'
    | 'tryAcquire'
  >
>();
is<Equal<keyof SemaphorePermits, 'count' | 'forget' | 'release' | 'semaphore' | typeof Symbol.dispose>>();
is<Equal<keyof typeof Barrier, 'prototype' | 'BYTES' | 'ALIGN'>>();
is<
  Equal<
    keyof Barrier,
    | 'broken'
    | 'buffer'
    | 'byteOffset'
    | 'inspect'
    | 'join'
    | 'name'
    | 'parties'
    | 'reset'
    | 'wait'
    | 'waitAsync'
    | 'waiting'
  >
>();
is<Equal<keyof BarrierMember, 'barrier' | 'leave' | typeof Symbol.dispose>>();
is<Equal<Exclude<keyof BrokenBarrierError, keyof Error>, 'code'>>();
is<Equal<keyof typeof Condition, 'prototype' | 'BYTES' | 'ALIGN'>>();
is<
  Equal<
    keyof Condition,
    | 'buffer'
    | 'byteOffset'
    | 'inspect'
    | 'name'
    | 'notify'
    | 'notifyAll'
    | 'notifyOne'
    | 'wait'
    | 'waitAsync'
    | 'waitFor'
    | 'waitForAsync'
  >
>();
is<Equal<Exclude<keyof TimeoutError, keyof Error>, 'code'>>();
is<Equal<Exclude<keyof DeadlockError, keyof Error>, 'code' | 'cycle'>>();

// The options, each of which may be undefined too.

is<Equal<Timeout, number>>();
is<Equal<Required<LockOptions>, { timeout: number | undefined }>>();
is<Equal<keyof AsyncLockOptions, 'timeout' | 'signal' | 'ref'>>();
is<Equal<AsyncLockOptions['signal'], AbortSignal | undefined>>();
is<Equal<AsyncLockOptions['ref'], boolean | undefined>>();
is<Equal<Required<WaitAsyncOptions>, { signal: AbortSignal | undefined; ref: boolean | undefined }>>();
is<
  Equal<
    Required<MutexOptions>,
    {
      allowMainThread: boolean | undefined;
      maySleep: boolean | undefined;
      name: string | undefined;
      onAbandoned: ((mutex: Mutex) => void) | undefined;
    }
  >
>();
is<Equal<Required<ConditionOptions>, { name: string | undefined }>>();
const { signal } = new AbortController();
const asyncOptions: AsyncLockOptions = { timeout: undefined, signal: undefined, ref: undefined };

// Mutex

const memory = new SharedArrayBuffer(16);
const mutex = new Mutex(memory);
new Mutex(memory, 4, { allowMainThread: true });
new Mutex(memory, undefined, { allowMainThread: undefined });
new Mutex(memory, 0, { name: 'jobs', onAbandoned: (mutex) => mutex.markConsistent() });
is<Equal<Mutex['name'], string | null>>();
is<Equal<Condition['name'], string | null>>();
new Condition(memory, 8, { name: 'not empty' });
is<Equal<typeof Mutex.BYTES, 4>>();
is<Equal<typeof Mutex.ALIGN, 4>>();
is<Equal<typeof mutex.buffer, SharedArrayBuffer>>();
is<Equal<typeof mutex.byteOffset, number>>();

is<Equal<ReturnType<Mutex['lock']>, boolean>>();
mutex.lock();
mutex.lock(5);
mutex.lock({ timeout: 5 });
is<Equal<ReturnType<Mutex['lockAsync']>, Promise<boolean>>>();
mutex.lockAsync();
mutex.lockAsync(5);
mutex.lockAsync({ timeout: 5, signal, ref: false });
mutex.lockAsync(asyncOptions);
is<Equal<ReturnType<Mutex['tryLock']>, boolean>>();
is<Equal<ReturnType<Mutex['unlock']>, void>>();
mutex.unlock();

const text = mutex.executeLocked(async () => 'text');
is<Equal<typeof text, Promise<string>>>();
const number = mutex.executeLocked(() => 1, { signal });
is<Equal<typeof number, Promise<number>>>();
const bigint = mutex.executeLockedSync(() => 1n, { timeout: 5 });
is<Equal<typeof bigint, bigint>>();
mutex.executeLockedSync(() => {});

is<Equal<ReturnType<Mutex['acquire']>, LockGuard>>();
mutex.acquire();
mutex.acquire(5);
mutex.acquire({ timeout: 5 });
is<Equal<ReturnType<Mutex['acquireAsync']>, Promise<LockGuard>>>();
mutex.acquireAsync(5);
mutex.acquireAsync({ timeout: 5, signal, ref: false });
is<Equal<ReturnType<Mutex['tryAcquire']>, LockGuard | null>>();
mutex.tryAcquire();
mutex.enter((token) => {
  is<Equal<typeof token, LockGuard>>();
  is<Equal<ReturnType<Mutex['leave']>, void>>();
  mutex.leave(token);
});

is<Equal<Mutex['isLocked'], boolean>>();
is<Equal<Mutex['isHeldByThisThread'], boolean>>();
is<Equal<Mutex['abandoned'], boolean>>();
is<Equal<ReturnType<Mutex['markConsistent']>, void>>();
is<Equal<ReturnType<Mutex['inspect']>, MutexInspection>>();
is<
  Equal<
    MutexInspection,
    {
      name: string | null;
      locked: boolean;
      ownerThreadId: number | null;
      abandoned: boolean;
      holders: MutexHolder[];
      waiters: MutexWaiter[];
    }
  >
>();
is<Equal<MutexHolder, { threadId: number; mode: 'exclusive'; count: number }>>();
is<Equal<MutexWaiter, { threadId: number; kind: 'blocking' | 'async'; mode: 'exclusive'; waitedMs: number }>>();
const [queued] = inspectAll();
is<Equal<typeof queued, QueuedMutexInspection | QueuedPrimitiveInspection>>();
is<Equal<(typeof queued)['byteOffset'], number>>();
if (queued.kind === 'Mutex') is<Equal<typeof queued.ownerThreadId, number | null>>();
else is<Equal<(typeof queued.holders)[0]['mode'], HoldMode>>();

// LockGuard

{
  using guard = mutex.acquire({ timeout: 1 });
  guard satisfies Disposable;
  is<Equal<typeof guard.mutex, Mutex>>();
  is<Equal<typeof guard.locked, boolean>>();
  is<Equal<typeof guard.abandoned, boolean>>();
  is<Equal<ReturnType<typeof guard.unlock>, boolean>>();
}
{
  using guard = await mutex.acquireAsync();
  guard[Symbol.dispose]();
}
{
  using maybe = mutex.tryAcquire();
  maybe?.unlock();
}

// LockTable, and several locks at once

is<Equal<keyof typeof LockTable, 'prototype' | 'BYTES' | 'ALIGN' | 'bytes'>>();
is<
  Equal<
    keyof LockTable,
    | 'acquire'
    | 'acquireAsync'
    | 'at'
    | 'buffer'
    | 'byteOffset'
    | 'executeLocked'
    | 'executeLockedSync'
    | 'indexFor'
    | 'inspect'
    | 'isHeldByThisThread'
    | 'length'
    | 'lock'
    | 'lockAll'
    | 'lockAllAsync'
    | 'lockAsync'
    | 'name'
    | 'tryAcquire'
    | 'tryLock'
    | 'unlock'
  >
>();
is<
  Equal<
    Required<LockTableOptions>,
    {
      allowMainThread: boolean | undefined;
      maySleep: boolean | undefined;
      name: string | undefined;
      onAbandoned: ((table: LockTable, index: number) => void) | undefined;
    }
  >
>();
const table = new LockTable(memory, undefined, LockTable.bytes(1), {
  onAbandoned: (table, index) => table.at(index).markConsistent(),
});
is<Equal<ReturnType<LockTable['lock' | 'tryLock' | 'isHeldByThisThread']>, boolean>>();
is<Equal<ReturnType<LockTable['unlock']>, void>>();
is<Equal<ReturnType<LockTable['lockAsync']>, Promise<boolean>>>();
is<Equal<ReturnType<LockTable['acquire']>, LockGuard>>();
is<Equal<ReturnType<LockTable['acquireAsync']>, Promise<LockGuard>>>();
is<Equal<ReturnType<LockTable['tryAcquire']>, LockGuard | null>>();
is<Equal<ReturnType<LockTable['at']>, Mutex>>();
is<Equal<ReturnType<LockTable['inspect']>, MutexInspection>>();
table.lock(0, { timeout: 5 });
table.lockAsync(0, { timeout: 5, signal, ref: false });
const fromTable = table.executeLocked(0, async () => 'text', { signal });
is<Equal<typeof fromTable, Promise<string>>>();
const fromTableSync = table.executeLockedSync(0, () => 1n, { timeout: 5 });
is<Equal<typeof fromTableSync, bigint>>();
for (const key of ['a', 1, 1n]) table.lock(table.indexFor(key), 5);
{
  using guard = table.lockAll([0, 1], 5);
  is<Equal<typeof guard, LockAllGuard<Mutex>>>();
  is<Equal<keyof typeof guard, 'abandoned' | 'locked' | 'unlock' | typeof Symbol.dispose>>();
  is<Equal<typeof guard.abandoned, Mutex[]>>();
  is<Equal<ReturnType<typeof guard.unlock>, boolean>>();
  is<Equal<ReturnType<typeof lockAll>, LockAllGuard>>();
  is<Equal<ReturnType<typeof lockAllAsync>, Promise<LockAllGuard>>>();
  is<Equal<LockAllGuard['abandoned'], Lockable[]>>();
  lockAll(new Set([mutex, table.at(1)]), { timeout: 5 });
  lockAllAsync([], { timeout: 5, signal, ref: false });
  table.lockAllAsync(new Set([1]), 5);
  const rw = new RwLock(new SharedArrayBuffer(8));
  using mixed = lockAll([mutex, table.at(1), rw.read, rw.write], 5);
  for (const lock of mixed.abandoned) {
    is<Equal<typeof lock, Mutex | Lockable<RwLockGuard>>>();
    if (lock instanceof Mutex) lock.markConsistent();
    else if (lock === rw.write) rw.markConsistent();
  }
  const readers: Promise<LockAllGuard<Lockable<RwLockGuard>>> = lockAllAsync([rw.read], { signal });
  const any: Promise<LockAllGuard> = readers;
  void any;
}

// layout

const places = layout({
  lock: Mutex,
  named: [Mutex, { name: 'named' }],
  changed: Condition,
  rows: [LockTable, 1000, { name: 'rows' }],
  total: Int32Array,
  prices: [Float64Array, 100],
});
places satisfies Layout<object>;
is<Equal<typeof places.byteLength, number>>();
is<Equal<ReturnType<typeof places.create>, SharedArrayBuffer>>();
const fields = places.on(memory, 8);
is<Equal<keyof typeof fields, 'lock' | 'named' | 'changed' | 'rows' | 'total' | 'prices'>>();
is<Equal<typeof fields.lock, Mutex>>();
is<Equal<typeof fields.named, Mutex>>();
is<Equal<typeof fields.changed, Condition>>();
is<Equal<typeof fields.rows, LockTable>>();
fields.total satisfies Int32Array;
fields.prices satisfies Float64Array;
fields.prices[0] satisfies number | undefined;

// Condition

const condition = new Condition(memory, 4);
new Condition(memory);
is<Equal<typeof Condition.BYTES, 4>>();
is<Equal<typeof Condition.ALIGN, 4>>();
is<Equal<typeof condition.buffer, SharedArrayBuffer>>();
is<Equal<typeof condition.byteOffset, number>>();
is<Equal<ReturnType<Condition['wait' | 'waitFor']>, boolean>>();
is<Equal<ReturnType<Condition['waitAsync' | 'waitForAsync']>, Promise<boolean>>>();
is<Equal<ReturnType<Condition['notify' | 'notifyOne' | 'notifyAll']>, number>>();
condition.wait(mutex);
condition.wait(mutex, 5);
condition.waitFor(mutex, () => 1, { timeout: 5 });
condition.waitAsync(mutex, 5);
condition.waitAsync(mutex, { timeout: 5, signal, ref: false });
condition.waitForAsync(mutex, async () => true, { timeout: 5, signal, ref: false });
condition.notify();
condition.notify(Infinity);
condition.notifyOne();
condition.notifyAll();

// Semaphore

is<Equal<keyof SemaphoreOptions, 'allowMainThread' | 'fair' | 'name'>>();
is<Equal<SemaphoreOptions['fair'], boolean | undefined>>();
new Semaphore(memory, 0, 4, { fair: true });
is<Equal<Semaphore['fair'], boolean>>();
is<Equal<Required<SynchronizerOptions>, { allowMainThread: boolean | undefined; name: string | undefined }>>();
is<Equal<Required<PermitsOptions>, { permits: number | undefined; timeout: number | undefined }>>();
is<Equal<keyof AsyncPermitsOptions, 'permits' | 'timeout' | 'signal' | 'ref'>>();
const semaphore = new Semaphore(memory, 0, 4);
new Semaphore(memory, undefined, 0, { name: 'connections', allowMainThread: true });
is<Equal<typeof Semaphore.BYTES, 4>>();
is<Equal<typeof Semaphore.MAX_PERMITS, number>>();
is<Equal<Semaphore['available'], number>>();
is<Equal<ReturnType<Semaphore['acquire']>, SemaphorePermits>>();
is<Equal<ReturnType<Semaphore['acquireAsync']>, Promise<SemaphorePermits>>>();
is<Equal<ReturnType<Semaphore['tryAcquire']>, SemaphorePermits | null>>();
is<Equal<ReturnType<Semaphore['release']>, void>>();
is<Equal<ReturnType<Semaphore['inspect']>, SemaphoreInspection>>();
semaphore.acquire();
semaphore.acquire(2, 5);
semaphore.acquire(2, { timeout: 5 });
semaphore.acquireAsync(2, { timeout: 5, signal, ref: false });
semaphore.tryAcquire(2);
semaphore.release(2);
const executed = semaphore.execute(async () => 'text', { permits: 2, signal });
is<Equal<typeof executed, Promise<string>>>();
const executedSync = semaphore.executeSync(() => 1n, { permits: 2, timeout: 5 });
is<Equal<typeof executedSync, bigint>>();
{
  using permits = await semaphore.acquireAsync();
  permits satisfies Disposable;
  is<Equal<typeof permits.count, number>>();
  is<Equal<typeof permits.semaphore, Semaphore>>();
  is<Equal<ReturnType<typeof permits.release>, boolean>>();
  is<Equal<ReturnType<typeof permits.forget>, void>>();
  permits.release(1);
}

// Barrier

const barrier = new Barrier(memory, 8, 3, { name: 'step' });
is<Equal<typeof Barrier.BYTES, 8>>();
is<Equal<Barrier['parties' | 'waiting'], number>>();
is<Equal<Barrier['broken'], boolean>>();
is<Equal<ReturnType<Barrier['wait']>, number>>();
is<Equal<ReturnType<Barrier['waitAsync']>, Promise<number>>>();
is<Equal<ReturnType<Barrier['reset']>, void>>();
is<Equal<ReturnType<Barrier['inspect']>, BarrierInspection>>();
barrier.wait(5);
barrier.waitAsync({ timeout: 5, signal, ref: false });
{
  using member = barrier.join();
  member satisfies Disposable;
  is<Equal<typeof member.barrier, Barrier>>();
  is<Equal<ReturnType<typeof member.leave>, boolean>>();
}

// Exchanger

const exchanger = new Exchanger(memory, 8, { name: 'place' });
is<Equal<keyof Exchanger, 'buffer' | 'byteOffset' | 'name' | 'exchange' | 'exchangeAsync' | 'inspect'>>();
is<Equal<typeof Exchanger.BYTES, 8>>();
is<Equal<ReturnType<Exchanger['exchange']>, number>>();
is<Equal<ReturnType<Exchanger['exchangeAsync']>, Promise<number>>>();
exchanger.exchange(1, 5);
exchanger.exchangeAsync(1, { timeout: 5, signal, ref: false });

// Events, latches, once

const primitiveOptions: PrimitiveOptions = { allowMainThread: undefined, name: undefined };
for (const Event of [ManualResetEvent, AutoResetEvent]) {
  const event = new Event(memory, 4, { allowMainThread: true, name: 'ready' });
  new Event(memory);
  is<Equal<keyof typeof Event, 'prototype' | 'BYTES' | 'ALIGN'>>();
  is<Equal<typeof Event.BYTES, 4>>();
  is<
    Equal<
      keyof typeof event,
      'buffer' | 'byteOffset' | 'inspect' | 'isSet' | 'name' | 'reset' | 'set' | 'wait' | 'waitAsync'
    >
  >();
  is<Equal<ReturnType<typeof event.set | typeof event.reset>, void>>();
  is<Equal<ReturnType<typeof event.wait>, boolean>>();
  is<Equal<ReturnType<typeof event.waitAsync>, Promise<boolean>>>();
  is<Equal<ReturnType<typeof event.inspect>, PrimitiveInspection>>();
  event.wait(5);
  event.wait({ timeout: 5 });
  event.waitAsync(5);
  event.waitAsync({ timeout: 5, signal, ref: false });
  event.isSet satisfies boolean;
}
const latch = new Latch(memory, 8, primitiveOptions);
is<
  Equal<
    keyof Latch,
    'add' | 'buffer' | 'byteOffset' | 'count' | 'countDown' | 'enter' | 'inspect' | 'name' | 'wait' | 'waitAsync'
  >
>();
is<Equal<ReturnType<Latch['add']>, void>>();
is<Equal<ReturnType<Latch['countDown']>, number>>();
latch.add(2);
latch.countDown();
latch.wait({ timeout: 5 });
latch.waitAsync({ signal });
{
  using entry = latch.enter();
  entry satisfies LatchEntry & Disposable;
  is<Equal<keyof LatchEntry, 'latch' | 'leave' | typeof Symbol.dispose>>();
  is<Equal<ReturnType<typeof entry.leave>, boolean>>();
}
is<
  Equal<
    keyof LockManager,
    | 'acquire'
    | 'acquireAsync'
    | 'check'
    | 'close'
    | 'query'
    | 'request'
    | 'requestSync'
    | 'stats'
    | typeof Symbol.asyncDispose
  >
>();
is<
  Equal<
    keyof HeldLock,
    | 'abandoned'
    | 'fence'
    | 'key'
    | 'locked'
    | 'markConsistent'
    | 'mode'
    | 'name'
    | 'signal'
    | 'unlock'
    | typeof Symbol.dispose
  >
>();
const manager: LockManager = new LockManager({ allowMainThread: true });
is<Equal<Parameters<LockManager['close']>, [options?: CloseOptions | undefined]>>();
is<Equal<CloseOptions, { wait?: boolean | undefined }>>();
new LockManager({ scope: 'process' });
new LockManager({ directory: '/locks' });
is<Equal<typeof locks, LockManager>>();
{
  const text = locks.request('name', async (lock) => {
    lock satisfies HeldLock & Disposable;
    return lock.name;
  });
  is<Equal<typeof text, Promise<string>>>();
  const maybe = locks.request('name', { ifAvailable: true }, (lock) => {
    is<Equal<typeof lock, HeldLock | null>>();
    return 1;
  });
  is<Equal<typeof maybe, Promise<number>>>();
  locks.request('name', { mode: 'shared', signal, timeout: 5, ref: false }, (lock) => {
    is<Equal<typeof lock, HeldLock>>();
    lock.markConsistent();
    is<Equal<typeof lock.mode, 'exclusive' | 'shared'>>();
    is<Equal<typeof lock.signal, AbortSignal>>();
  });
  const acquired = locks.acquireAsync('name', { steal: true });
  is<Equal<typeof acquired, Promise<HeldLock>>>();
  const perhaps = locks.acquireAsync('name', { ifAvailable: true });
  is<Equal<typeof perhaps, Promise<HeldLock | null>>>();
  const blocked = manager.acquire('name', { timeout: 5 });
  is<Equal<typeof blocked, HeldLock>>();
  const together = locks.request(['a', 'b'] as const, ([a, b]) => [a, b].length);
  is<Equal<typeof together, Promise<number>>>();
  const several = locks.acquireAsync(['a', 'b']);
  is<Equal<typeof several, Promise<HeldLocks>>>();
  const blockedForAll = locks.acquire(['a', 'b'], { ifAvailable: true });
  is<Equal<typeof blockedForAll, HeldLocks | null>>();
  const inSync = locks.requestSync(['a'], { timeout: 5 }, (all) => all.map(({ name }) => name));
  is<Equal<typeof inSync, string[]>>();
  // @ts-expect-error: not several at once.
  locks.request(['a', 'b'], { steal: true }, () => {});
  new LockManager({ onAbandoned: async (lock) => lock.markConsistent() });
  is<Equal<ReturnType<typeof blocked.unlock>, boolean>>();
  const count: number = manager.requestSync('name', ({ name }) => name.length);
  const none = manager.requestSync('name', { ifAvailable: true }, (lock) => lock?.abandoned ?? null);
  is<Equal<typeof none, boolean | null>>();
  manager.requestSync('name', { mode: 'shared' }, () => count);
  const seen = locks.query();
  is<Equal<typeof seen, Promise<LockManagerSnapshot>>>();
  seen.then(({ held: [{ name, mode, clientId, pid, threadId, heldMs }], pending: [request] }) => {
    is<Equal<typeof clientId, string>>();
    is<Equal<typeof heldMs, number>>();
    return [name, mode, pid, threadId, request.clientId, request.mode, request.name];
  });
}
const once = new Once(memory, 12, { name: 'tables' });
is<Equal<keyof Once, 'buffer' | 'byteOffset' | 'inspect' | 'isDone' | 'name' | 'run' | 'runSync'>>();
is<Equal<ReturnType<Once['run']>, Promise<boolean>>>();
is<Equal<ReturnType<Once['runSync']>, boolean>>();
once.run(async ({ abandoned }) => {
  is<Equal<typeof abandoned, boolean>>();
});
once.run(() => {}, { timeout: 5, signal, ref: false });
once.runSync((notes: OnceNotes) => notes.abandoned, 5);
const [waiting] = once.inspect().waiters;
is<Equal<typeof waiting.mode, HoldMode>>();
is<Equal<typeof waiting.kind, 'blocking' | 'async'>>();

// The waiting functions

const numbers = new Int32Array(memory);
const bigints = new BigInt64Array(memory);
is<Equal<WaitResult, 'ok' | 'not-equal' | 'timed-out'>>();
const outcomes = [wait(numbers, 0, 0, 5), wait(bigints, 0, 0n)];
is<Equal<typeof outcomes, WaitResult[]>>();
is<Equal<ReturnType<typeof notify>, number>>();
notify(numbers);
notify(bigints, 0, 1);
const pending = waitAsync(numbers, 0, 0, Number.NaN, { signal, ref: false });
is<Equal<typeof pending, WaitAsyncResult>>();
if (pending.async) is<Equal<typeof pending.value, Promise<'ok' | 'timed-out'>>>();
else is<Equal<typeof pending.value, 'not-equal' | 'timed-out'>>();
waitAsync(bigints, 0, 0n);

// Diagnosis

const counts = stats();
is<Equal<typeof counts, Stats>>();
counts satisfies { [name in keyof Stats]: number };
subscribe('sablock:contended', (message) => {
  is<Equal<typeof message, DiagnosticsMessages['sablock:contended']>>();
  const { kind, ownerThreadId, outcome, name } = message;
  is<Equal<typeof name, string | null>>();
  is<Equal<typeof kind, 'blocking' | 'async'>>();
  is<Equal<typeof ownerThreadId, number | null>>();
  is<Equal<typeof outcome, 'acquired' | 'timed-out' | 'aborted'>>();
});
// As the README has it.
subscribe('sablock:long-hold', ({ byteOffset, ownerThreadId, heldAtLeastMs }) => {
  console.warn(`${byteOffset + ownerThreadId + heldAtLeastMs}`);
});
unprefixed.subscribe('sablock:deadlock', ({ cycle }, name) => console.warn(cycle.length, name));
subscribe('sablock:store', ({ store, event, error }) => console.warn(store, event === 'pooler', error?.message));
unsubscribe('sablock:abandoned', ({ ownerThreadId }) => console.warn(ownerThreadId));
// Other channels are as before.
for (const [on, off] of [
  [subscribe, unsubscribe],
  [unprefixed.subscribe, unprefixed.unsubscribe],
] as const) {
  on('undici:request:create', (message) => {
    is<Equal<typeof message, unknown>>();
  });
  off(Symbol.for('of somebody'), () => {});
}
channel('sablock:contended').hasSubscribers satisfies boolean;
is<Equal<DiagnosticsMessages['sablock:long-hold']['heldAtLeastMs'], number>>();
declare const message: DiagnosticsMessages[Exclude<keyof DiagnosticsMessages, 'sablock:store'>];
is<Equal<typeof message.mutex, Mutex | null>>();
is<Equal<typeof message.lockKind, 'Mutex' | 'RwLock' | 'Semaphore' | 'Latch' | 'Barrier' | 'Once' | 'HeldLock'>>();
is<Equal<typeof message.lock, Mutex | RwLock | Semaphore | Latch | Barrier | Once | HeldLock>>();
if (message.lock instanceof RwLock) message.lock.readers satisfies number;
is<Equal<DiagnosticsMessages['sablock:abandoned']['mode'], 'exclusive' | 'shared' | 'permits' | 'entry' | 'member'>>();
is<Equal<DiagnosticsMessages['sablock:deadlock']['cycle'], DeadlockError['cycle']>>();

// The errors

declare const error: unknown;
if (error instanceof TimeoutError) {
  error satisfies Error;
  is<Equal<typeof error.name, 'TimeoutError'>>();
  is<Equal<typeof error.code, 'ERR_LOCK_TIMEOUT'>>();
}
if (error instanceof BrokenBarrierError) {
  error satisfies Error;
  is<Equal<typeof error.name, 'BrokenBarrierError'>>();
  is<Equal<typeof error.code, 'ERR_LOCK_BROKEN'>>();
}
if (error instanceof DeadlockError) {
  error satisfies Error;
  is<Equal<typeof error.name, 'DeadlockError'>>();
  is<Equal<typeof error.code, 'ERR_LOCK_DEADLOCK'>>();
  is<Equal<(typeof error.cycle)[number], { threadId: number; byteOffset: number; name?: string }>>();
}

// RwLock

is<Equal<keyof typeof RwLock, 'prototype' | 'BYTES' | 'ALIGN' | 'MAX_READERS'>>();
is<
  Equal<
    keyof RwLock,
    | 'abandoned'
    | 'buffer'
    | 'byteOffset'
    | 'downgrade'
    | 'inspect'
    | 'isWriteLocked'
    | 'markConsistent'
    | 'name'
    | 'read'
    | 'readers'
    | 'tryUpgrade'
    | 'write'
  >
>();
is<
  Equal<
    keyof Lockable,
    | 'acquire'
    | 'acquireAsync'
    | 'executeLocked'
    | 'executeLockedSync'
    | 'isHeldByThisThread'
    | 'lock'
    | 'lockAsync'
    | 'tryAcquire'
    | 'tryLock'
    | 'unlock'
  >
>();
is<Equal<Exclude<keyof RwLockGuard, keyof LockGuard>, 'downgrade' | 'mode' | 'tryUpgrade'>>();
is<Equal<keyof RwLockOptions, 'allowMainThread' | 'maySleep' | 'name' | 'onAbandoned'>>();
is<Equal<keyof RwLockInspection, 'name' | 'holders' | 'waiters'>>();
is<Equal<RwLockHolder['mode'], 'exclusive' | 'shared'>>();
is<Equal<keyof RwLockWaiter, 'threadId' | 'kind' | 'mode' | 'waitedMs'>>();
const rwlock = new RwLock(memory, 0, { name: 'cache', onAbandoned: (lock) => lock.markConsistent() });
is<Equal<typeof RwLock.BYTES, 8>>();
is<Equal<RwLock['readers'], number>>();
is<Equal<ReturnType<RwLock['downgrade']>, void>>();
is<Equal<ReturnType<RwLock['tryUpgrade']>, boolean>>();
is<Equal<typeof rwlock.read, Lockable<RwLockGuard>>>();
const reading = rwlock.read.acquire({ timeout: 5 });
is<Equal<typeof reading, RwLockGuard>>();
is<Equal<typeof reading.mutex, null>>();
is<Equal<typeof reading.mode, 'shared' | 'exclusive'>>();
const anyGuard: LockGuard<Mutex | null> = reading;
anyGuard.unlock();
for (const lockable of [mutex, rwlock.read, rwlock.write] satisfies Lockable[]) {
  is<Equal<ReturnType<typeof lockable.lock>, boolean>>();
}
const written: Promise<number> = rwlock.write.executeLocked(() => 1, { signal });
written.then(undefined);
new Condition(memory, 8).wait(rwlock.write, 5);
