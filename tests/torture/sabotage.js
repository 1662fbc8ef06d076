// Faults put in on purpose, by breaking the lock, or what is logged of it, from the JS side.
// Each must be found: `self-test.js` shows which of the checks does.

/** By name: how often it strikes when it can, and the kinds of violation of which one must be reported. */
exports.SABOTAGES = {
  'enter-unlocked': { rate: 0.02, found: ['overlap', 'sequence'] },
  'reset-word': { rate: 0.02, found: ['overlap', 'sequence', 'refused', 'error'] },
  'drop-record': { rate: 0.002, found: ['sequence'] },
  'swap-order': { rate: 0.02, found: ['order'] },
  'early-timeout': { rate: 0.05, found: ['early'] },
  'hold-after-abort': { rate: 0.2, found: ['aborted'] },
  'lose-wait': { rate: 0.005, found: ['stall', 'lost'] },
  'forget-unlock': { rate: 0.005, found: ['stall', 'kept'] },
  'sleep-inside': { rate: 0.01, found: ['stall'] },
  'slow-grant': { rate: 0.005, found: ['overtaken'] },
  // As if nobody had woken it, and its slice had ended.
  'late-wake': { rate: 1, found: ['late'] },
  'swallow-warning': { rate: 0.5, found: ['warning'] },
  'warn-twice': { rate: 0.5, found: ['warning'] },
  unmark: { rate: 0.5, found: ['unmarked'] },
  'mark-falsely': { rate: 0.005, found: ['marked', 'unmarked'] },
  'imagine-deadlock': { rate: 0.02, found: ['deadlock'] },
  'report-twice': { rate: 1, found: ['deadlock'] },
  'silent-misuse': { rate: 0.05, found: ['misuse'] },
  'stay-in-queue': { rate: 1, found: ['quiet'] },
  'drop-notification': { rate: 0.05, found: ['dropped'] },
  overcount: { rate: 0.02, found: ['dropped'] },
  // As if it had failed to lock the mutex again, and nobody had got the notification in its place.
  'keep-notification': { rate: 0.5, found: ['dropped'] },
  // As if its thread were ending.
  'imagine-ending': { rate: 0.05, found: ['error'] },
  'invent-notification': { rate: 0.05, found: ['invented'] },
  'skip-waiters': { rate: 0.2, found: ['skipped'] },
  'swap-queue': { rate: 0.1, found: ['order'] },
  'return-unlocked': { rate: 0.05, found: ['overlap', 'sequence'] },
  'lose-condition-wait': { rate: 0.02, found: ['stall', 'lost'] },
  'lose-use': { rate: 0.02, found: ['stall', 'lost'], args: ['--kind', 'semaphore'] },
  'swap-uses': { rate: 0.02, found: ['order'], args: ['--kind', 'rwlock'] },
  'write-beside': { rate: 0.05, found: ['overlap', 'unmarked', 'order'], args: ['--kind', 'rwlock'] },
  'unmark-use': { rate: 1, found: ['unmarked'], args: ['--kind', 'rwlock', '--deaths', '3'] },
  'mark-use': { rate: 0.02, found: ['marked'], args: ['--kind', 'rwlock'] },
  // As if it had got permits without having its turn.
  overtake: { rate: 0.05, found: ['permits'], args: ['--kind', 'semaphore'] },
  'miss-turn': { rate: 0.3, found: ['overtaken'], args: ['--kind', 'semaphore'] },
  'lose-permit': { rate: 0.01, found: ['permits', 'stall'], args: ['--kind', 'semaphore'] },
  'add-permit': { rate: 0.01, found: ['permits'], args: ['--kind', 'semaphore'] },
  'keep-entry': { rate: 0.02, found: ['entries', 'quiet', 'stall'], args: ['--kind', 'latch'] },
  // An error: the latch refuses to count down what the main thread has added.
  'count-twice': { rate: 0.02, found: ['entries', 'error'], args: ['--kind', 'latch'] },
  'pass-latch': { rate: 0.2, found: ['passed'], args: ['--kind', 'latch'] },
  'miss-opening': { rate: 0.3, found: ['missed'], args: ['--kind', 'latch'] },
  'pass-barrier': { rate: 0.05, found: ['parties'], args: ['--kind', 'barrier'] },
  'mend-broken': { rate: 0.5, found: ['parties'], args: ['--kind', 'barrier', '--deaths', '3'] },
  'swap-value': { rate: 0.05, found: ['pairs'], args: ['--kind', 'exchanger'] },
  'pass-event': { rate: 0.1, found: ['passed'], args: ['--kind', 'manual'] },
  'pass-twice': { rate: 0.3, found: ['passed'], args: ['--kind', 'auto'] },
  'lose-set': { rate: 0.2, found: ['missed', 'dropped'], args: ['--kind', 'manual'] },
  'lose-auto-set': { rate: 0.2, found: ['dropped'], args: ['--kind', 'auto'] },
  'run-again': { rate: 0.1, found: ['again', 'overlap', 'unmarked'], args: ['--kind', 'once'] },
  'hold-a-name-beside': { rate: 0.05, found: ['overlap', 'unmarked'], args: ['--kind', 'name'] },
  'unmark-a-name': { rate: 1, found: ['unmarked'], args: ['--kind', 'name', '--deaths', '3'] },
};

/** Returns `strikes(name)`: whether the fault of this run strikes now. */
exports.saboteur = (chosen, random) => (name) => chosen === name && random.chance(exports.SABOTAGES[name].rate);

/** imagine-deadlock: a cycle with the main thread, which never blocks without a limit. */
exports.imagine = ({ arena, threadId }, { mutex }) => [
  { threadId, byteOffset: arena.offset(mutex) },
  { threadId: 0, byteOffset: arena.offset(0) },
];

/** report-twice: the thread of a DeadlockError passes a cycle of two to the other thread, which reports it too. */
exports.passCycle = ({ passedCycle }, [mine, other]) => {
  passedCycle.set([mine.threadId, mine.byteOffset, other.threadId, other.byteOffset]);
};

exports.isPassed = ({ arena, threadId }, { mutex, timeout, isBlocking }) =>
  isBlocking &&
  timeout === Infinity &&
  arena.passedCycle[2] === threadId &&
  arena.passedCycle[3] === arena.offset(mutex);

exports.passedCycle = ({ arena: { passedCycle } }) => [
  { threadId: passedCycle[2], byteOffset: passedCycle[3] },
  { threadId: passedCycle[0], byteOffset: passedCycle[1] },
];
