// All that is left to chance, drawn from a seed: what a round is like, how its threads end, which wait comes next.

const { FATES } = require('./log.js');
const { ASYNC, BLOCKING, Wait } = require('./wait.js');

/** A small seeded generator (mulberry32): the same numbers for the same seeds, on every machine. */
exports.Random = class Random {
  #state = 0x9e3779b9;

  constructor(...seeds) {
    for (const seed of seeds) this.#state = (Math.imul(this.#state ^ seed, 0x85ebca6b) + this.next() * 2 ** 32) | 0;
  }

  /** From 0, below 1. */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0, below `limit`. */
  below(limit) {
    return Math.floor(this.next() * limit);
  }

  between(low, high) {
    return low + this.next() * (high - low);
  }

  chance(probability) {
    return this.next() < probability;
  }

  pick(list) {
    return list[this.below(list.length)];
  }

  /** A key of `weights`, as often as its number says. */
  weighted(weights) {
    const entries = Object.entries(weights);
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [key, weight] of entries) {
      left -= weight;
      if (left < 0) return key;
    }
    return entries.at(-1)[0];
  }
};

/** The paces of rounds, and how often each is: `crossing` is for deadlocks. */
const PACES = { hot: 2, usual: 4, sparse: 2, crossing: 1 };

/**
 * `share`: how often a thread that could wait notifies instead; `everyMs`: how often the main thread does so beside that.
 * Long queues are where notifications are seldom and waits long: what gets lost on the way to a thread
 * that is busy and dies shows there.
 */
const NOTIFYING = {
  often: { share: 0.4, everyMs: 5, waits: { endless: 3, timed: 4, long: 1, once: 0.5 } },
  seldom: { share: 0.03, everyMs: 80, waits: { endless: 0.3, timed: 2, long: 4, once: 0.3 } },
};

/** A round: busy or sparse, many mutexes or few, ends often or seldom. */
exports.drawProfile = (random, options) => {
  const pace = options.pace ?? random.weighted(PACES);
  const think = { hot: 0.005, usual: 0.2, sparse: 0.9, crossing: 0.1 }[pace];
  const notifying = random.weighted({ often: 2, seldom: 1 });
  const isCrossing = pace === 'crossing';
  const styles = isCrossing ? { crosses: 6, mixes: 1 } : { blocks: 2, nests: 2, awaits: 2, mixes: 3 };
  return {
    pace,
    think,
    thinkMs: pace === 'sparse' ? 20 : 5,
    holdUs: isCrossing ? 300 : random.pick([1, 20, 100]),
    busy: (notifying === 'seldom' ? 0.05 : random.pick([0, 0.005, 0.02])) * options.busy,
    threads: Math.max(1, Math.min(options.threads, 2 + random.below(options.threads))),
    mutexes: isCrossing ? Math.max(3, options.mutexes) : 1 + random.below(options.mutexes),
    goesOnAfterThrow: options['after-throw'] > 0,
    conditions: 1 + random.below(3),
    /** The share of threads' acts that wait for notifications or notify, without a mutex and with one. */
    waitsOrNotifies: random.pick([0, 0.1, 0.3]),
    waitsWithMutex: random.pick([0, 0.05, 0.2]),
    /** The share that uses something of another kind than mutexes and conditions. */
    uses: isCrossing || options.uses === 0 ? 0 : options.kind === undefined ? random.pick([0, 0, 0.3, 0.7]) : 0.9,
    /** The kind; undefined: all. */
    kind: options.kind,
    /** The share that locks several mutexes at once. */
    several: options.uses === 0 ? 0 : random.pick([0, 0.05, 0.2]),
    notifying: NOTIFYING[notifying],
    stride: random.pick([4, 64]),
    styles: Array.from({ length: 7 }, () => random.weighted(styles)),
    ms: options['round-seconds'] * 1000 * random.between(0.5, 1.2),
    killEveryMs: options.deaths === 0 ? Infinity : random.pick([60, 150, 400]) / options.deaths,
    suicides: options.deaths === 0 ? 0 : 0.5,
    lifeMs: 1500 / (options.deaths || 1),
  };
};

/** Draws how a thread is to end by itself, and when: `{ fate, after }`. */
exports.drawPlan = (random, profile) => {
  if (!random.chance(profile.suicides)) return { fate: FATES.RUNNING, after: 0 };
  const fate = FATES[random.weighted({ EXITS: 4, THROWS: 4, RETURNS: 4, OVERFLOWS: 0.5 })];
  return { fate, after: random.between(20, profile.lifeMs) };
};

const ENDLESS = [undefined, NaN, Infinity];
const ONCE = [0, -1, -Infinity, -0.001];

/** A time limit as it is given, and as it counts. */
function drawTimeout(random, weights) {
  switch (random.weighted(weights)) {
    case 'endless':
      return { given: random.pick(ENDLESS), timeout: Infinity };
    case 'long': {
      const timeout = random.between(50, 300);
      return { given: timeout, timeout };
    }
    case 'once':
      return { given: random.pick(ONCE), timeout: 0 };
    default: {
      const timeout = random.chance(0.3) ? random.between(0.05, 1) : random.between(1, random.chance(0.2) ? 120 : 15);
      return { given: timeout, timeout };
    }
  }
}

/** A signal for some of the waits: aborted before, in this turn, soon, or shared by many. */
function drawSignal(actor) {
  const { random } = actor;
  const choice = random.next();
  if (choice < 0.75) return {};
  if (choice < 0.85) {
    const { signal } = actor.sharedController();
    return { signal, reason: () => signal.reason };
  }
  const controller = new AbortController();
  const { signal } = controller;
  const own = random.chance(0.5) ? { why: 'torture' } : undefined;
  const abort = () => controller.abort(own);
  if (choice < 0.87) abort();
  else if (choice < 0.9) queueMicrotask(abort);
  else if (choice < 0.93) setImmediate(abort);
  else setTimeout(abort, random.below(12));
  return { signal, reason: () => signal.reason };
}

function draw(actor, verb, mutex, limits) {
  const { random } = actor;
  const hasOptions = verb !== 'enter' && !verb.startsWith('try');
  const { given, timeout } = drawTimeout(random, limits);
  const wait = new Wait(actor, verb, mutex, verb.startsWith('try') ? 0 : hasOptions ? timeout : Infinity);
  if (!hasOptions) return { wait };
  if (!ASYNC.has(verb)) {
    const takesNumber = verb === 'lock' && random.chance(0.7);
    return { wait, options: takesNumber ? given : given === undefined ? undefined : { timeout: given } };
  }
  const { signal, reason } = drawSignal(actor);
  wait.reason = reason;
  if (signal === undefined && random.chance(0.5)) {
    return { wait, options: verb === 'lockAsync' || given === undefined ? given : { timeout: given } };
  }
  return { wait, options: { timeout: given, signal, ref: random.chance(0.8) } };
}

/** A wait of a thread that may hold nothing. */
exports.drawWait = (actor, mutex = actor.random.below(actor.mutexes.length)) => {
  const { random, style } = actor;
  const verb = random.weighted(style.verbs);
  const limits = BLOCKING.has(verb) && actor.isMain ? { timed: 1, once: 1 } : { endless: 5, timed: 3, once: 1 };
  return draw(actor, verb, mutex, limits);
};

/**
 * A wait of a thread that holds something already. Pending promises have a time limit here, since cycles with them are
 * not detected; blocking ones have none, mostly, since theirs are.
 */
exports.drawNested = (actor, isAsync, held) => {
  const { random } = actor;
  const others = actor.mutexes.length - 1;
  const isOther = others > 0 && random.chance(0.9);
  const mutex = isOther ? (held + 1 + random.below(others)) % (others + 1) : held;
  if (isAsync) {
    const verb = random.pick(['lockAsync', 'acquireAsync', 'executeLocked']);
    return draw(actor, verb, mutex, { timed: 5, once: 1 });
  }
  const verb = random.pick(['lock', 'lock', 'acquire', 'executeLockedSync', 'tryLock', 'tryAcquire']);
  return draw(actor, verb, mutex, actor.isMain ? { timed: 1, once: 1 } : { endless: 4, timed: 1 });
};

exports.PACES = PACES;
exports.drawSignal = drawSignal;
exports.drawTimeout = drawTimeout;
