// The end of a round, when all threads but the main one have ended: nobody waits, and each mutex is free, or held by
// the dead. The main thread takes each once, which closes the books on those who died inside.

const { PHASES } = require('./log.js');
const { Wait } = require('./wait.js');

/** What `inspect()` says of each mutex. */
exports.describeMutexes = ({ mutexes }) =>
  mutexes.map((mutex, index) => `  mutex ${index}: ${JSON.stringify(mutex.inspect())}`).join('\n');

exports.sweep = (actor, threads, report) => {
  const { arena, mutexes } = actor;
  if (actor.strikes('linger-in-queue')) for (let time = 0; time < 2; time++) mutexes[0].lockAsync();
  for (const [index, mutex] of mutexes.entries()) {
    const { waiters, ownerThreadId } = mutex.inspect();
    const state = () => `mutex ${index}, when all was over: ${JSON.stringify(mutex.inspect())}`;
    if (waiters.length > 0) report('quiet', `${state()}: somebody waits`);
    const owner = threads.find((thread) => thread.threadId === ownerThreadId);
    if (ownerThreadId !== null && (owner === undefined || !owner.died))
      report('quiet', `${state()}: a living thread holds`);
    const wait = new Wait(actor, 'tryLock', index, 0);
    if (!mutex.tryLock()) {
      report('quiet', `${state()}: it cannot be taken`);
      continue;
    }
    wait.held();
    wait.clearing();
    mutex.markConsistent();
    wait.leaving();
    mutex.unlock();
    wait.freed();
    const word = Atomics.load(arena.word(index), 0);
    if (word !== 0) report('quiet', `${state()}: the free word is 0x${word.toString(16)}`);
  }
};

/** Whom a thread that does not end waits for, from its log. */
exports.describeThread = ({ slot, threadId, style, log }) => {
  const open = [...log.records()].filter(({ phase }) => [PHASES.BEGUN, PHASES.HELD, PHASES.LEAVING].includes(phase));
  const pending = open.map(({ index, mutex, verb, timeout, phase }) => {
    const state = Object.keys(PHASES)[phase].toLowerCase();
    return `#${index} verb ${verb} mutex ${mutex} timeout ${timeout} ${state}`;
  });
  return `  slot ${slot}, thread ${threadId}, ${style}: ${pending.join('; ') || 'nothing open'}`;
};
