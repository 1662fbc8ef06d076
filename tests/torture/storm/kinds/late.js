// Waits that only the main thread can end: it lets a worker in once it has begun to terminate it. The worker's code never has what
// it was granted then, so that no mark is left, no permit lost, and no wake-up. Each worker has primitives of its own.

const { PERMITS } = require('../memory.js');

exports.name = 'late';

const ABANDONED = 1 << 27;

/** For good; the other kinds have their turns for long enough before. */
exports.turns = (actor) => {
  const late = actor.places.late[actor.name - 1];
  const waits = [
    () => late.mutex.lock(),
    () => late.rw.read.lock(),
    () => late.rw.write.lock(),
    () => late.semaphore.acquire(PERMITS),
    () => late.event.wait(),
  ];
  return [
    () => {
      if (actor.below(10) !== 0) return;
      const { buffer, byteOffset } = late.mutex;
      if (actor.strikes('mark-late')) Atomics.or(new Int32Array(buffer, byteOffset, 1), 0, ABANDONED);
      waits[actor.below(waits.length)]();
      actor.complain('was let in once its end had begun, and its code goes on');
    },
  ];
};

/** Keeps the worker of this slot waiting. */
exports.prepare = ({ places }, slot) => {
  const { mutex, rw, semaphore } = places.late[slot];
  mutex.tryLock();
  rw.write.tryLock();
  places.late[slot].permits = semaphore.tryAcquire(PERMITS);
};

/**
 * The end of the worker has begun: what it waits for is let go of. Returns whether it waited. One that still runs may take a
 * free lock itself, until V8 stops it.
 */
exports.begunToEnd = ({ places }, slot) => {
  const late = places.late[slot];
  const { event, mutex, permits, rw, semaphore } = late;
  late.waits = [event, mutex, rw, semaphore].some((primitive) => primitive.inspect().waiters.length > 0);
  event.set();
  mutex.unlock();
  rw.write.unlock();
  permits.release();
  return late.waits;
};

exports.check = ({ places, expect }) => {
  for (const { event, mutex, rw, semaphore } of places.late.filter(({ waits }) => waits)) {
    expect(event.isSet, 'late: the wake-up went to one that was ending', () => event.inspect());
    const word = Atomics.load(new Int32Array(mutex.buffer, mutex.byteOffset, 1), 0);
    expect(word === 0, 'late: marked by one that never had it', () => mutex.inspect());
    expect(!rw.isWriteLocked && rw.readers === 0 && !rw.abandoned, 'late: the RwLock', () => rw.inspect());
    expect(semaphore.available === PERMITS, 'late: permits are lost', () => semaphore.inspect());
  }
};

exports.finish = async () => {};
