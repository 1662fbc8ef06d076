// A user's program in TypeScript. It is compiled as an ES module, as a CommonJS module, and for the old resolution.

import { Condition, type LockGuard, Mutex, TimeoutError } from 'sablock';

const memory = new SharedArrayBuffer(Mutex.BYTES + Condition.BYTES);
const mutex: Mutex = new Mutex(memory, 0, { allowMainThread: true });
const changed: Condition = new Condition(memory, Mutex.BYTES);

async function main(): Promise<string> {
  const guard: LockGuard = mutex.acquire({ timeout: 1000 });
  const refused: unknown = await mutex.acquireAsync({ timeout: 1 }).catch((error: unknown) => error);
  guard.unlock();
  const notified: number = changed.notifyAll();
  const result: string = await mutex.executeLocked(() => 'works');
  if (!(refused instanceof TimeoutError) || refused.code !== 'ERR_LOCK_TIMEOUT' || notified !== 0) throw refused;
  // @ts-expect-error An offset is a number.
  if (memory.byteLength === 0) new Mutex(memory, '0');
  return result;
}

main().then((result) => console.log(`The package ${result}: TypeScript.`));
