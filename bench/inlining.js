'use strict';
// npm run bench:inlining: what V8 makes of the fast paths, read from its own output: which methods it inlines into the loops
// that the scenarios of pairs that nobody else wants measure, which calls are left in their machine code, and whether it ever takes that back.
// Measures nothing; ends non-zero if a fast path is not inlined, calls what two bare compare-exchanges do not, or does not last.

const { spawnSync } = require('node:child_process');
const path = require('node:path');
const { format } = require('./lib/table');

/** By pair, as `uncontended` and `semaphore` name them, with `read.` before those of an RwLock's read: what has to be inlined. */
const LOOPS = {
  'lock+unlock': ['lock', 'unlock'],
  'tryLock+unlock': ['tryLock', 'unlock'],
  executeLockedSync: ['executeLockedSync', 'hold'],
  'acquire+guard.unlock': ['acquire', 'unlock'],
  'read.lock+unlock': ['lock', 'unlock'],
  'tryAcquire+release': ['tryAcquire', '#take', 'release', '#giveBack'],
};

/** Not of a fast path: room for the guard when the nursery is full, and the loop's own counter in a closure. */
const HARMLESS = /^(Allocate\w*|DetachContextCell)$/;

// Compiled on the main thread, so that what the compiler says and what the program says are not mixed.
const FLAGS = [
  '--allow-natives-syntax',
  '--no-concurrent-recompilation',
  '--trace-turbo-inlining',
  '--trace-deopt',
  '--print-opt-code',
  '--print-opt-code-filter=loop',
];

const unique = (list) => [...new Set(list)];

/** Runs the loop of `pair` (none: the two bare compare-exchanges) and reads what V8 says. */
function observe(pair) {
  const args = [...FLAGS, path.join(__dirname, 'programs', 'warm-loop.js'), ...(pair ? [pair] : [])];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(`${pair}: ${stderr}`);
  const [warming, warm] = stdout.split(/^DebugPrint: .*warm$/m);
  const inlined = [...warming.matchAll(/^Inlining .*?<SharedFunctionInfo (\S+)>.* into .*<SharedFunctionInfo loop>/gm)];
  const codes = stdout.split('--- Optimized code ---').filter((code) => /^kind = TURBOFAN/m.test(code));
  const calls = codes.at(-1)?.matchAll(/\((\w+)\)\s+;; near builtin entry/g) ?? [];
  return {
    isPrinted: codes.length > 0,
    inlined: unique(inlined.map(([, name]) => name.replace('exports.', ''))),
    calls: unique([...calls].map(([, name]) => name)),
    deopts: warm.match(/^\[bailout .*/gm)?.length ?? 0,
  };
}

const bare = observe();
const lines = [['loop', 'inlined', 'calls beside those of bare compare-exchanges', 'deopts when warm']];
const faults = [];

for (const [pair, wanted] of Object.entries(LOOPS)) {
  const { isPrinted, inlined, calls, deopts } = observe(pair);
  const missing = wanted.filter((name) => !inlined.includes(name));
  const others = calls.filter((name) => !bare.calls.includes(name));
  lines.push([pair, inlined.join(', ') || '-', others.join(', ') || '-', String(deopts)]);
  if (bare.isPrinted && !isPrinted) faults.push(`${pair}: the loop was not optimised`);
  if (missing.length) faults.push(`${pair}: not inlined: ${missing.join(', ')}`);
  const harmful = others.filter((name) => !HARMLESS.test(name));
  if (harmful.length) faults.push(`${pair}: calls ${harmful.join(', ')}`);
  if (deopts) faults.push(`${pair}: ${deopts} deoptimisations of warm code`);
}

console.log(`Node ${process.version}, V8 ${process.versions.v8}: what the optimiser makes of the fast paths\n`);
console.log(format(lines));
console.log(`\nTwo bare compare-exchanges call: ${bare.calls.join(', ') || 'nothing'}`);
if (!bare.isPrinted) console.log('This Node prints no machine code: of calls nothing is known.');
for (const fault of faults) console.error(`PROBLEM: ${fault}`);
process.exitCode = faults.length ? 1 : 0;
