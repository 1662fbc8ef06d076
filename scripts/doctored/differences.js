// Tests that cannot pass with the lock doctor on, and why. `npm run test:doctored` fails if one of them passes.

/** By test: `{ file, test, why }`. */
exports.FAULTS = [
  {
    file: 'diagnosis/diagnostics-channels',
    test: 'without subscribers no clock is read and no timer started, with one it is',
    why: 'the doctor reads the clock and starts a timer of its own',
  },
];

/** Errors in notes of the doctor that a program provokes, by patterns of its path and of the error. */
exports.PROVOKED = [
  {
    program: /binding.[a-z-]+\.test\.js$/,
    error: /^(?:TypeError: Cannot read properties of|Error: expected an Int32Array)/,
    why: 'calls the binding as the package never does',
  },
  {
    program: /workers.(?:actor|dying)\.js$/,
    error: /reading 'id'\)/,
    why: 'the thread is ending, and the binding makes no objects there',
  },
  {
    program: /(?:mutex.bad-input|kinds.receivers)\.test\.js$/,
    error: /^TypeError: Cannot read (?:private member|properties of (?:undefined|null) \(reading '#)/,
    why: 'calls methods on receivers that are not of the class',
  },
  {
    program: /kinds.second-kind\.test\.js$/,
    error: /is used as another kind/,
    why: 'uses memory as two kinds of lock',
  },
  {
    program: /kinds.throwing-builtins\.test\.js$/,
    error: /^Error: thrown by what was patched/,
    why: 'patches builtins with what throws',
  },
  {
    program: /table.lock-table\.test\.js$/,
    error: /^TypeError: Cannot (?:mix BigInt|convert a Symbol)/,
    why: 'asks for locks at indices that are no numbers',
  },
];

/** Folders that say nothing about it, or start it themselves, with options of their own. */
exports.LEFT_OUT = new Map([
  ['doctor', 'starts it'],
  ['cli', 'runs programs of its own'],
  ['layout', 'no lock is waited for'],
  ['loading', 'runs programs of its own'],
  ['release', 'packs and publishes: no lock'],
  ['systems', 'runs programs of its own'],
  ['types', 'compiles'],
]);

/** Most of the time goes into these. */
exports.LONG = new Set([
  'condition/condition-guards',
  'ends/stack-ends',
  'mutex/many-waits',
  'named/request',
  'rwlock/verbs',
  'stores',
]);
