// One thread's part in the torture: tasks that lock and unlock at random until the round is over, or the thread is.

const { subscribe } = require('node:diagnostics_channel');
const { setImmediate: turn, setTimeout: sleep } = require('node:timers/promises');
const { Condition, LockTable, Mutex } = require('./package.js');
const { FATES, KINDS, OUTCOMES, PHASES, STATE } = require('./log.js');
const { Misuse } = require('./misuse.js');
const { saboteur } = require('./sabotage.js');
const { Wait } = require('./wait.js');
const { drawWait } = require('./choices.js');
const { perform } = require('./verbs.js');
const { bodiesOf } = require('./body.js');
const { performSeveral } = require('./several.js');
const { TableFace } = require('./table-face.js');
const { facesOf, THINGS } = require('./things.js');
const { keepAll, performUse } = require('./uses/index.js');
const { notifySome, waitForNotification, waitForNotificationAsync } = require('./conditions.js');

const SYNC = { lock: 5, acquire: 2, executeLockedSync: 2, tryLock: 1, tryAcquire: 1 };
const ASYNC = { lockAsync: 5, acquireAsync: 2, executeLocked: 2, enter: 2 };

/**
 * The likes of a thread: its verbs, how often it awaits other things, how many tasks, how often it nests, up to how many waits it
 * begins at once.
 */
const STYLES = {
  blocks: { verbs: SYNC, awaits: 0, tasks: 1, nest: 0.02, burst: 1 },
  nests: { verbs: { lock: 5, acquire: 2 }, awaits: 0, tasks: 1, nest: 0.2, burst: 1 },
  crosses: { verbs: { lock: 5, acquire: 2 }, awaits: 0, tasks: 1, nest: 0.5, burst: 1 },
  awaits: { verbs: { ...ASYNC, tryLock: 1, tryAcquire: 1 }, awaits: 1, tasks: 3, nest: 0.05, burst: 20 },
  mixes: { verbs: { ...SYNC, ...ASYNC }, awaits: 0.5, tasks: 3, nest: 0.05, burst: 5 },
  main: {
    verbs: { ...ASYNC, tryLock: 1, tryAcquire: 1, lock: 0.3, acquire: 0.3 },
    awaits: 0.8,
    tasks: 3,
    nest: 0.05,
    burst: 10,
  },
};

/** The actor of this thread in the present round. */
let present;

// Each end is published on the channel; of the warnings some are left out.
subscribe('sablock:abandoned', (message) => present.abandoned(message));

exports.Actor = class Actor {
  #idle = new Int32Array(new SharedArrayBuffer(4));
  #controller = new AbortController();
  #table;
  #useOrder;
  /** The number of times that its tasks have awaited: microtasks from before have run. */
  turn = 0;
  /** Its own end has begun. */
  isEnding = false;

  /** `plan`: how and when this thread is to end by itself, `{ fate, after }`. */
  constructor({ arena, log, random, profile, slot, threadId, plan, style, sabotage }) {
    Object.assign(this, { arena, log, random, profile, slot, threadId, plan });
    this.isMain = style === 'main';
    this.style = STYLES[style];
    this.mayBlock = !this.isMain;
    this.strikes = saboteur(sabotage, random);
    this.order = new Array(arena.mutexes).fill(0);
    this.asyncShare = this.style.awaits;
    this.things = facesOf(arena.things, this.isMain);
    this.#useOrder = new Array(THINGS.length).fill(0);
    // All mutexes as one table, and what lies between them.
    const length = ((arena.mutexes - 1) * arena.stride) / LockTable.BYTES + 1;
    this.#table = new LockTable(arena.memory, arena.offset(0), length, { allowMainThread: this.isMain });
    this.mutexes = Array.from({ length: arena.mutexes }, (_, mutex) => this.#face(mutex));
    this.conditions = Array.from(
      { length: arena.conditions },
      (_, condition) => new Condition(arena.memory, arena.conditionOffset(condition)),
    );
    this.misuse = new Misuse(this);
    this.dies = arena.now() + plan.after;
    log.state[STATE.THREAD] = threadId;
    process.emitWarning = (message, options) => this.#warned(message, options);
    present = this;
  }

  #face(mutex) {
    if (this.random.chance(0.2)) return new TableFace(this.#table, (mutex * this.arena.stride) / LockTable.BYTES);
    return new Mutex(this.arena.memory, this.arena.offset(mutex), { allowMainThread: this.isMain });
  }

  #warned(message, { code } = {}) {
    if (code !== 'SABLOCK_ABANDONED') this.complain('error', `warning: ${message}`);
  }

  /** Which asynchronous use of a thing comes next. */
  nextOrder(thing) {
    return this.#useOrder[thing]++;
  }

  abandoned({ lock, byteOffset, ownerThreadId }) {
    // The marks of the others are checked where they are seen.
    if (lock.buffer !== this.arena.memory) return;
    const times = this.strikes('swallow-warning') ? 0 : this.strikes('warn-twice') ? 2 : 1;
    for (let time = 0; time < times; time++) {
      this.log.open(PHASES.ENDED, {
        kind: KINDS.WARNING,
        mutex: this.arena.mutexAt(byteOffset),
        about: ownerThreadId,
        beginTick: this.arena.tick(),
      });
    }
  }

  complain(kind, text) {
    this.log.complain(kind, text);
  }

  /** Until all tasks have ended. */
  async run() {
    const abortAll = setInterval(() => this.#controller.abort(), 7);
    await Promise.all(Array.from({ length: this.style.tasks }, () => this.#task()));
    clearInterval(abortAll);
  }

  /** A controller that several waits share, and that is aborted now and then. */
  sharedController() {
    if (this.#controller.signal.aborted) this.#controller = new AbortController();
    return this.#controller;
  }

  get #isOver() {
    const returns = this.plan.fate === FATES.RETURNS && this.arena.now() >= this.dies;
    return returns || this.arena.isStopping || this.log.isFull;
  }

  async #task() {
    const { random, profile, style } = this;
    for (let step = 1; !this.#isOver; step++) {
      const size = random.chance(0.2) ? 1 + random.below(style.burst) : 1;
      const mutex = random.below(this.mutexes.length);
      if (random.chance(0.01)) this.mutexes[mutex] = this.#face(mutex);
      if (size === 1) await this.#once();
      else await Promise.all(Array.from({ length: size }, () => this.#once(random.chance(0.7) ? mutex : undefined)));
      this.turn += 1;
      if (random.chance(0.05)) this.misuse.try();
      if (random.chance(profile.busy / 4)) this.beBusy();
      if (this.strikes('reset-word')) Atomics.store(this.arena.word(mutex), 0, 0);
      if (random.chance(profile.think)) await sleep(random.below(profile.thinkMs));
      else if (step % 8 === 0) await turn();
    }
  }

  async #once(mutex) {
    if (this.isEnding && !this.profile.goesOnAfterThrow) await new Promise(() => {});
    if (this.random.chance(this.profile.uses)) return performUse(this);
    if (this.random.chance(this.profile.several)) return performSeveral(this);
    if (this.random.chance(this.profile.waitsOrNotifies)) return this.#waitOrNotify();
    const { wait, options } = drawWait(this, mutex);
    return perform(this, wait, options, bodiesOf(this, wait, 0));
  }

  /** Without a mutex. */
  async #waitOrNotify() {
    const { random, style } = this;
    if (random.chance(this.profile.notifying.share)) notifySome(this);
    else if (style.verbs.lockAsync && (!style.verbs.lock || !this.mayBlock || random.chance(0.6))) {
      await waitForNotificationAsync(this);
    } else waitForNotification(this);
  }

  /** Returns how this thread is to end, if it is to end now and by itself. */
  dueFate() {
    const { fate } = this.plan;
    return fate !== FATES.RUNNING && fate !== FATES.RETURNS && this.arena.now() >= this.dies ? fate : undefined;
  }

  mayThrowInCallback() {
    return this.dueFate() === FATES.THROWS && this.random.chance(0.5);
  }

  throwInCallback() {
    this.meet(FATES.THROWS_IN_CALLBACK);
    throw new Error('torture: thrown in the callback of enter()');
  }

  /** Says in the log how the thread ends, which it does next. */
  meet(fate) {
    const tick = this.arena.tick();
    if (!this.isEnding) this.log.state[STATE.ENDING_TICK] = tick;
    this.isEnding = true;
    this.log.state[STATE.FATE_TICK] = tick;
    Atomics.store(this.log.state, STATE.FATE, fate);
  }

  /** Ends by leaving nothing to do, with a mutex and other things held, and waits pending that do not keep the loop alive. */
  returnHolding() {
    this.meet(FATES.RETURNS);
    if (this.profile.uses > 0) keepAll(this);
    for (const mutex of this.mutexes.keys()) {
      const wait = new Wait(this, 'lock', mutex, 20);
      if (this.mutexes[mutex].lock(20)) {
        wait.held();
        break;
      }
      wait.ended(OUTCOMES.TIMED_OUT);
    }
    for (const [mutex, face] of this.mutexes.entries()) {
      const wait = new Wait(this, 'lockAsync', mutex, Infinity);
      face.lockAsync({ ref: false }).then(
        () => wait.held(),
        () => {},
      );
    }
    waitForNotificationAsync(this, { ref: false });
  }

  /** Occupies the thread, so that its loop does not turn. */
  spin(ms) {
    for (const until = performance.now() + ms; performance.now() < until; );
  }

  sleep(ms) {
    Atomics.wait(this.#idle, 0, 0, ms);
  }

  /** Keeps the loop from turning, for up to 300 ms. */
  beBusy() {
    const { arena, log, random } = this;
    const busy = log.open(PHASES.BEGUN, { kind: KINDS.BUSY, beginTick: arena.tick(), beginTime: arena.now() });
    Atomics.store(log.state, STATE.BUSY, 1);
    const ms = random.chance(0.8) ? random.between(1, 20) : random.between(20, 300);
    if (random.chance(0.5)) this.spin(ms);
    else this.sleep(ms);
    Atomics.store(log.state, STATE.BUSY, 0);
    log.write(busy, { endTime: arena.now() });
    log.advance(busy, PHASES.ENDED);
  }
};

exports.STYLES = STYLES;
