// The declarations of sablock/doctor. Compiled, never run.

import type { DiagnosticsMessages } from 'sablock';
import {
  type Contention,
  type DeadlockWait,
  type Doctor,
  type DoctorOptions,
  type DoctorReport,
  type LockName,
  type Place,
  start,
} from 'sablock/doctor';
import type { Equal } from './equal.d.ts';

const doctor: Doctor = start();
const options: DoctorOptions = { lockOrder: true, deadlocks: true, contention: false, trace: true, leaks: true };
start({ lockOrder: undefined, deadlocks: undefined, contention: undefined, trace: undefined, leaks: undefined });
start({
  places: undefined,
  longHoldMs: undefined,
  stuckMs: undefined,
  likelyMs: undefined,
  throwOnDeadlock: undefined,
});
start({ places: false, throwOnDeadlock: 'likely' });
start({ ...options, longHoldMs: 10, stuckMs: Number.POSITIVE_INFINITY, throwOnDeadlock: true });
// @ts-expect-error not a number
start({ stuckMs: '5' });
// @ts-expect-error no such option
start({ verbose: true });

const report: DoctorReport = doctor.report();
doctor.print();
doctor.writeProfile('locks.pb.gz');
doctor.writeTrace('locks.json');
doctor.stop();

for (const { edges } of report.lockOrder) {
  const places: Place[] = edges.flatMap(({ held, locked }) => [held, locked]);
  const locks: LockName[] = edges.flatMap(({ from, to }) => [from, to]);
  const numbers: number[] = places.map(({ threadId }) => threadId);
  const names: (string | null)[] = locks.map(({ name }) => name);
  console.log(numbers, names);
}
for (const { certainty, waits } of report.deadlocks) {
  const isCertain: boolean = certainty === 'certain';
  const of: DeadlockWait[] = waits;
  console.log(isCertain, of);
}
const contention: Contention[] = report.contention;
const [hold] = report.longHolds;
const heldMs: number | undefined = hold?.heldMs;
const threads: number[] = report.threadsWithoutDoctor;
console.log(contention, heldMs, threads, report.neverReleased, report.leaks, report.stuck);

type Deadlock = DiagnosticsMessages['sablock:deadlock'];
const isSame: Equal<Deadlock['waits'], DeadlockWait[] | undefined> = true;
console.log(isSame);
