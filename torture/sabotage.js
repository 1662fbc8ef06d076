// Faults put in on purpose, by breaking the lock, or what is told of it, from the JS side.
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
  'swallow-warning': { rate: 0.5, found: ['warning'] },
  'warn-twice': { rate: 0.5, found: ['warning'] },
  unmark: { rate: 0.5, found: ['unmarked'] },
  'mark-falsely': { rate: 0.005, found: ['marked', 'unmarked'] },
  'imagine-deadlock': { rate: 0.02, found: ['deadlock'] },
  'tell-two': { rate: 1, found: ['deadlock'] },
  'silent-misuse': { rate: 0.05, found: ['misuse'] },
  'linger-in-queue': { rate: 1, found: ['quiet'] },
};

/** Answers `strikes(name)`: whether the fault of this run strikes now. */
exports.saboteur = (chosen, random) => (name) => chosen === name && random.chance(exports.SABOTAGES[name].rate);

/** imagine-deadlock: a circle with the main thread, which never blocks without a limit. */
exports.imagine = ({ arena, threadId }, { mutex }) => [
  { threadId, byteOffset: arena.offset(mutex) },
  { threadId: 0, byteOffset: arena.offset(0) },
];

/** tell-two: the one who was told of a circle of two tells the other, who will tell of it too. */
exports.whisper = ({ whispers }, [mine, other]) => {
  whispers.set([mine.threadId, mine.byteOffset, other.threadId, other.byteOffset]);
};

exports.isWhispered = ({ arena, threadId }, { mutex, timeout, isBlocking }) =>
  isBlocking && timeout === Infinity && arena.whispers[2] === threadId && arena.whispers[3] === arena.offset(mutex);

exports.hear = ({ arena: { whispers } }) => [
  { threadId: whispers[2], byteOffset: whispers[3] },
  { threadId: whispers[0], byteOffset: whispers[1] },
];
