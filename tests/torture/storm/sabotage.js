// Faults that are put into the storm on purpose: `self-test.js` shows that each is found, and by what is said of it.

/** By name: the kind that it is put into, and what is said of it. */
exports.SABOTAGES = {
  'write-unlocked': { kind: 'rwlock', found: /beside a writer|is inside|came in|another came/ },
  'give-back-twice': { kind: 'semaphore', found: /permits/ },
  'lose-permits': { kind: 'semaphore', found: /permits are taken/ },
  'lose-fair-permits': { kind: 'fair', found: /fair: .*permits are taken/ },
  'lose-entry': { kind: 'latch', found: /latch: the count/ },
  'count-down-twice': { kind: 'latch', found: /count/ },
  'mend-barrier': { kind: 'barrier', found: /barrier: a member ended/ },
  'mark-late': { kind: 'late', found: /marked by one that never had it/ },
  'hide-end': { kind: 'mutex', found: /there is no mark|is inside/ },
  // The ledger says nothing of what a worker holds, all the time.
  'forget-lock': { kind: 'table', found: /nobody ended inside, and there is a mark/ },
  'forget-entry': { kind: 'latch', found: /are counted/ },
};

/** One time in so many. */
const RATE = 5;

/** Returns `strikes(name)`: whether the fault of this run strikes now. */
exports.saboteur = (chosen, below) => (name) => chosen === name && below(RATE) === 0;
