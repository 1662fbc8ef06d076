// One use of something in things.js, drawn at random; and what the main thread does so that nobody waits in vain.

const { THINGS, ofKind } = require('../things.js');
const { Use } = require('../use.js');
const { reset } = require('./barrier.js');
const { signal } = require('./event.js');
const { meet } = require('./exchanger.js');
const { keep: keepName } = require('./name.js');

const KINDS = {
  rwlock: require('./rwlock.js'),
  semaphore: require('./semaphore.js'),
  latch: require('./latch.js'),
  barrier: require('./barrier.js'),
  exchanger: require('./exchanger.js'),
  auto: require('./event.js'),
  manual: require('./event.js'),
  once: require('./once.js'),
  name: require('./name.js'),
};
const WEIGHTS = { rwlock: 5, semaphore: 5, latch: 2, barrier: 2, exchanger: 2, auto: 2, manual: 1, once: 1, name: 3 };

exports.performUse = (actor) => {
  const { profile, random } = actor;
  const kind = profile.kind ?? random.weighted(WEIGHTS);
  return KINDS[kind].perform(actor, random.pick(ofKind(kind)));
};

/** Signals some, or all at which somebody waits once the round is over. Returns how many ticks that takes. */
exports.signalSome = (actor, isOver) => {
  const { faces } = actor.things;
  const chances = {
    auto: () => 0.2,
    manual: () => 0.2,
    barrier: (thing) => (faces[thing].broken ? 0.3 : 0.1),
    exchanger: () => 0,
  };
  const due = [...THINGS.keys()].filter((thing) => {
    const chance = chances[THINGS[thing].kind];
    if (chance === undefined) return false;
    return isOver ? faces[thing].inspect().waiters.length > 0 : actor.random.chance(chance(thing));
  });
  for (const thing of due) {
    if (THINGS[thing].kind === 'barrier') reset(actor, thing);
    else if (THINGS[thing].kind === 'exchanger') meet(actor, thing);
    else signal(actor, thing, 'set');
  }
  // A promise is also noted when it is queued.
  return due.reduce((sum, thing) => sum + (THINGS[thing].kind === 'exchanger' ? 3 : 2), 0);
};

/** Holds whatever can be had at once, for ever: this thread is about to end. */
exports.keepAll = (actor) => {
  for (const [thing, face] of actor.things.faces.entries()) {
    const { kind } = THINGS[thing];
    if (kind === 'name') keepName(actor, thing, actor.random.chance(0.5) ? 'shared' : 'exclusive');
    const mode = actor.random.chance(0.5) ? 'read' : 'write';
    const [verb, take] =
      {
        rwlock: [`${mode}.tryAcquire`, () => face[mode].tryAcquire()],
        semaphore: ['semaphore.tryAcquire', () => face.tryAcquire()],
        latch: ['latch.enter', () => face.enter()],
        barrier: ['barrier.join', () => face.join()],
      }[kind] ?? [];
    if (verb === undefined) continue;
    const use = new Use(actor, thing, verb, { timeout: 0, count: kind === 'semaphore' ? 1 : 0 });
    if (take() === null) use.failed({ code: 'ERR_LOCK_TIMEOUT' });
    else {
      use.held(kind === 'rwlock' ? { abandoned: Number(face.abandoned) } : undefined);
      if (kind === 'rwlock' && mode === 'write') use.alone(face.abandoned);
    }
  }
};
