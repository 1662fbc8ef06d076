// One round: threads torture the mutexes of a new arena for a few seconds, some end on the way and are replaced; then
// all come to rest, and the logs are checked.

const { setImmediate: turn, setTimeout: sleep } = require('node:timers/promises');
const { join } = require('node:path');
const { Worker, threadId: mainThreadId } = require('node:worker_threads');
const { Actor } = require('./actor.js');
const { createArena } = require('./arena.js');
const { Random, drawPlan, drawProfile } = require('./choices.js');
const { notifySome } = require('./conditions.js');
const { describeRound } = require('./stall.js');
const { FATES, STATE } = require('./log.js');
const { THINGS } = require('./things.js');
const { signalSome } = require('./uses/index.js');
const { addMissing } = require('./uses/semaphore.js');
const { BARE_WAKE } = require('./checks/latency.js');
const { Wait } = require('./wait.js');

/** At most so many threads, one after the other, in a round. */
const MOST_THREADS = 48;
const HEAP = { maxOldGenerationSizeMb: 12, maxYoungGenerationSizeMb: 2 };

exports.Round = class Round {
  #number;
  #options;
  #logs;
  #random;
  #report;
  #summary;
  #replacing = new Set();
  /** The ticks of the notifications that go on when nothing else does. */
  #notifierTicks = 0;

  /** `logs`: a pool of logs. */
  constructor(number, options, logs, summary, report) {
    this.#number = number;
    this.#options = options;
    this.#logs = logs;
    this.#summary = summary;
    this.#report = report;
    this.#random = new Random(options.seed, number);
    this.profile = drawProfile(this.#random, options);
    this.arena = createArena(this.profile.mutexes, this.profile.conditions, this.profile.stride);
    this.threads = [];
    /** The end of the things in things.js, by their indices, when all is over. */
    this.leftOver = [];
  }

  /** True if all came to rest. */
  async run() {
    const { arena, profile } = this;
    const { seed, sabotage, patience } = this.#options;
    const main = { slot: 0, threadId: mainThreadId, style: 'main', log: this.#logs.take(), died: false };
    this.threads.push(main);
    const actor = new Actor({
      ...main,
      arena,
      profile,
      sabotage,
      random: new Random(seed, this.#number, 0),
      plan: { fate: FATES.RUNNING, after: Infinity },
    });
    this.actor = actor;
    for (let count = 0; count < profile.threads; count++) this.#spawn();
    const stalled = this.#watch(patience);
    const tortured = this.#torture(actor);
    const isQuiet = await Promise.race([stalled.promise, tortured]);
    stalled.stop();
    if (!isQuiet) return false;
    for (const thread of this.threads) this.#fate(thread);
    sweep(actor, this.threads, this.#report);
    this.leftOver = sweepThings(actor.things.faces, this.#report);
    return true;
  }

  async #torture(actor) {
    const { arena, profile } = this;
    const running = actor.run();
    // The notifier goes on until nobody may be left to notify: all the others may wait, or be blocked by those who do.
    let isOver = false;
    this.#notifyUntil(actor, () => isOver);
    const end = arena.now() + profile.ms;
    await this.#terminateSome(end);
    arena.stop();
    await Promise.all(this.#replacing);
    await running;
    await Promise.all(this.threads.map((thread) => thread.ended));
    isOver = true;
    return true;
  }

  #spawn() {
    const { seed, sabotage } = this.#options;
    const { arena, profile } = this;
    const slot = this.threads.length;
    const random = new Random(seed, this.#number, slot, 1);
    const plan = drawPlan(random, profile);
    const style = profile.styles[slot % profile.styles.length];
    const thread = { slot, style, plan, log: this.#logs.take(), fate: FATES.RUNNING, died: false };
    const seeds = [seed, this.#number, slot];
    const workerData = { arena: arena.shared, log: thread.log.memory, profile, slot, plan, style, sabotage, seeds };
    const overflows = plan.fate === FATES.OVERFLOWS;
    thread.worker = new Worker(join(__dirname, 'worker.js'), {
      workerData,
      resourceLimits: overflows ? HEAP : undefined,
      stderr: overflows,
    });
    thread.threadId = thread.worker.threadId;
    thread.ended = new Promise((resolve) => {
      thread.worker.on('error', (error) => this.#check(thread, error));
      thread.worker.on('exit', () => {
        thread.deathTime = arena.now();
        thread.deathTick = arena.tick();
        addMissing(this.actor.things, thread.log);
        if (thread.askedToEnd !== undefined) {
          this.#summary.measure('terminate() to the end of the thread, ms', thread.deathTime - thread.askedToEnd);
        }
        resolve();
        this.#replace();
      });
    });
    thread.worker.on('online', () => {
      thread.isOnline = true;
    });
    this.threads.push(thread);
  }

  /** An error of a worker is part of the torture, or a violation. */
  #check(thread, error) {
    const isTorture = error.message?.startsWith('torture: ') || error.code === 'ERR_WORKER_OUT_OF_MEMORY';
    if (!isTorture) this.#report('error', `thread ${thread.threadId}: ${error.stack ?? error}`);
  }

  #replace() {
    if (this.arena.isStopping || this.threads.length >= MOST_THREADS) return;
    const replaced = sleep(this.#random.below(30)).then(() => {
      this.#replacing.delete(replaced);
      if (!this.arena.isStopping && this.threads.length < MOST_THREADS) this.#spawn();
    });
    this.#replacing.add(replaced);
  }

  get #living() {
    return this.threads.filter((thread) => thread.worker !== undefined && thread.deathTime === undefined);
  }

  async #terminateSome(end) {
    const { arena, profile } = this;
    while (arena.now() < end && !this.#isFull()) {
      const pause = this.#random.between(0, 2 * profile.killEveryMs);
      await sleep(Math.max(0, Math.min(pause, end - arena.now(), 300)));
      if (pause > 300 && this.#random.chance(0.5)) continue;
      const victims = this.#living.filter((thread) => thread.askedToEnd === undefined);
      if (arena.now() >= end || victims.length === 0 || profile.killEveryMs === Infinity) continue;
      const stuck = victims.filter(isStuck);
      const isChosen = stuck.length > 0 && this.#random.chance(0.5);
      const victim = this.#random.pick(isChosen ? stuck : victims);
      if (!isChosen) await this.#await(victim, this.#random.pick(['blocked', 'holding', 'awaiting', 'anything']));
      // Some die between their notification and their code by that.
      if (isChosen || this.#random.chance(0.3)) this.#notifyEach(this.#random.pick([1, 1, 2, 3]));
      victim.askedToEnd = arena.now();
      victim.worker.terminate();
    }
  }

  /** Some waiters now and then; everybody once the round is over. */
  async #notifyUntil(actor, isOver) {
    const { arena, log, profile } = actor;
    while (!isOver() && !log.isSpent) {
      if (arena.isStopping) this.#notifyEach(Infinity);
      else notifySome(actor);
      const signals = profile.uses > 0 ? signalSome(actor, arena.isStopping) : 0;
      this.#notifierTicks += signals + 2 * (arena.isStopping ? arena.conditions : 1);
      await sleep(arena.isStopping ? 20 : profile.notifying.everyMs);
    }
  }

  #notifyEach(count) {
    for (const condition of this.actor.conditions.keys()) notifySome(this.actor, condition, count);
  }

  /** The rest of the main thread's log is for waking the others until they have come to rest: the round is over before that. */
  #isFull() {
    const living = this.#living;
    return this.actor.log.isFull || (living.length > 0 && living.every(({ log }) => log.isFull));
  }

  /** Until the thread does that, for 20 ms at most. */
  async #await({ log: { state } }, what) {
    const isSo = {
      blocked: () => Atomics.load(state, STATE.BLOCKED) > 0,
      holding: () => Atomics.load(state, STATE.HOLDING) > 0,
      awaiting: () => Atomics.load(state, STATE.PENDING) > 0,
      anything: () => true,
    };
    for (const until = this.arena.now() + 20; !isSo[what]() && this.arena.now() < until; ) await turn();
  }

  #fate(thread) {
    const said = Atomics.load(thread.log.state, STATE.FATE);
    thread.died = thread.worker !== undefined && said !== FATES.DONE;
    thread.fate = said === FATES.RUNNING && thread.askedToEnd !== undefined ? FATES.TERMINATED : said;
    if (thread.died && thread.fate === FATES.RUNNING) {
      this.#report('error', `thread ${thread.threadId} ended, and nobody knows why`);
    }
  }

  /** Looks for threads that stand still; the promise is of false. */
  #watch(patience) {
    const { arena } = this;
    let ticks = 0;
    let since = arena.now();
    let timer;
    const promise = new Promise((resolve) => {
      timer = setInterval(() => {
        this.#summary.measure(BARE_WAKE, lateness());
        const now = arena.now();
        const others = arena.ticks - this.#notifierTicks;
        if (others > ticks) [ticks, since] = [others, now];
        const stuck = this.#living.filter(({ log: { state } }) => {
          const isEndless = Atomics.load(state, STATE.BLOCKED) === 1;
          return isEndless && now - Atomics.load(state, STATE.BLOCKED_SINCE) > patience;
        });
        if (now - since < patience && stuck.length === 0) return;
        const ids = stuck.map(({ threadId }) => threadId).join(', ');
        const last = `the last progress was ${Math.round(now - since)} ms ago`;
        const what = stuck.length > 0 ? `stuck: ${ids}; ${last}` : `no progress; ${last}`;
        this.#report('stall', `${what}\n${describeRound(this, this.actor)}`);
        resolve(false);
      }, 250);
    });
    return { promise, stop: () => clearInterval(timer) };
  }
};

/** Returns how late a sleeping thread wakes by itself, in milliseconds: what this machine can do under this load. */
function lateness() {
  const startedAt = performance.now();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
  return performance.now() - startedAt - 1;
}

/** Blocked or busy, with promises pending that its loop cannot settle. */
function isStuck({ log: { state } }) {
  const isStanding = Atomics.load(state, STATE.BLOCKED) > 0 || Atomics.load(state, STATE.BUSY) > 0;
  return isStanding && Atomics.load(state, STATE.PENDING) > 0;
}

/** When all threads but the main one have ended: nobody waits, and nobody holds but those who ended. Returns what is left. */
function sweepThings(faces, report) {
  return faces.map((face, thing) => {
    const { kind, name } = THINGS[thing];
    const { holders, waiters } = face.inspect();
    const isShared = ({ mode }) => mode !== 'exclusive';
    if (waiters.length > 0) report('quiet', `${name}: somebody waits: ${JSON.stringify(waiters)}`);
    if (holders.some(isShared)) report('quiet', `${name}: somebody holds: ${JSON.stringify(holders)}`);
    if (kind === 'rwlock' && face.readers !== 0) report('quiet', `${name}: ${face.readers} readers`);
    if (kind === 'rwlock' && !face.write.tryLock()) report('quiet', `${name}: it cannot be taken`);
    if (kind === 'barrier' && face.waiting !== 0) report('quiet', `${name}: ${face.waiting} parties`);
    return face.available ?? face.count ?? 0;
  });
}

/**
 * When all threads but the main one have ended: nobody waits, and each mutex is free, or held by the dead. The main thread
 * takes each once, which closes the books on those who died inside.
 */
function sweep(actor, threads, report) {
  const { arena, mutexes } = actor;
  if (actor.strikes('stay-in-queue')) for (let time = 0; time < 2; time++) mutexes[0].lockAsync();
  for (const [condition, face] of actor.conditions.entries()) {
    const woken = face.notifyAll();
    if (woken > 0) report('quiet', `condition ${condition}, when all was over: ${woken} waited`);
  }
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
}
