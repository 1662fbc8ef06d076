// Tests that cannot pass with the lock doctor on, and why. `npm run test:doctored` fails if one of them passes.

/** By test: `{ file, test, why }`. */
exports.FAULTS = [
  {
    file: 'diagnosis/diagnostics-channels',
    test: 'without subscribers no clock is read and no timer started, with one it is',
    why: 'the doctor reads the clock and starts a timer of its own',
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
