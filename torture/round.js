// One round: threads torture the mutexes of a new arena for a few seconds, some end on the way and are replaced; then
// all come to rest, and the logs are checked.

const { setImmediate: turn, setTimeout: sleep } = require('node:timers/promises');
const { join } = require('node:path');
const { Worker, threadId: mainThreadId } = require('node:worker_threads');
const { Actor } = require('./actor.js');
const { createArena } = require('./arena.js');
const { FATES, STATE } = require('./log.js');
const { describeMutexes, describeThread, sweep } = require('./quiet.js');
const { drawPlan, drawProfile } = require('./plans.js');
const { Random } = require('./random.js');

/** At most so many threads, one after the other, in a round. */
const MOST_THREADS = 48;
const HEAP = { maxOldGenerationSizeMb: 12, maxYoungGenerationSizeMb: 2 };

exports.Round = class Round {
  #number;
  #options;
  #logs;
  #random;
  #report;
  #tally;
  #replacing = new Set();

  /** `logs`: a pool of logs. */
  constructor(number, options, logs, tally, report) {
    this.#number = number;
    this.#options = options;
    this.#logs = logs;
    this.#tally = tally;
    this.#report = report;
    this.#random = new Random(options.seed, number);
    this.profile = drawProfile(this.#random, options);
    this.arena = createArena(this.profile.mutexes, this.profile.stride);
    this.threads = [];
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
    return true;
  }

  async #torture(actor) {
    const { arena, profile } = this;
    const running = actor.run();
    const end = arena.now() + profile.ms;
    await this.#terminateSome(end);
    arena.stop();
    await Promise.all(this.#replacing);
    await running;
    await Promise.all(this.threads.map((thread) => thread.ended));
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
        if (thread.askedToEnd !== undefined) {
          this.#tally.measure('terminate() to the end of the thread, ms', thread.deathTime - thread.askedToEnd);
        }
        resolve();
        this.#replace();
      });
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
    while (arena.now() < end && !this.#allFull()) {
      const pause = this.#random.between(0, 2 * profile.killEveryMs);
      await sleep(Math.max(0, Math.min(pause, end - arena.now(), 300)));
      if (pause > 300 && this.#random.chance(0.5)) continue;
      const victims = this.#living.filter((thread) => thread.askedToEnd === undefined);
      if (arena.now() >= end || victims.length === 0 || profile.killEveryMs === Infinity) continue;
      const victim = this.#random.pick(victims);
      await this.#await(victim, this.#random.pick(['blocked', 'holding', 'awaiting', 'anything']));
      victim.askedToEnd = arena.now();
      victim.worker.terminate();
    }
  }

  #allFull() {
    const living = this.#living;
    return living.length > 0 && living.every(({ log }) => log.isFull);
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
        const now = arena.now();
        if (arena.ticks !== ticks) [ticks, since] = [arena.ticks, now];
        const stuck = this.#living.find(({ log: { state } }) => {
          const isEndless = Atomics.load(state, STATE.BLOCKED) === 1;
          return isEndless && now - Atomics.load(state, STATE.BLOCKED_SINCE) > patience;
        });
        if (now - since < patience && stuck === undefined) return;
        this.#report('stall', `${stuck ? `thread ${stuck.threadId} is stuck` : 'no progress'}\n${this.#dump()}`);
        resolve(false);
      }, 250);
    });
    return { promise, stop: () => clearInterval(timer) };
  }

  #dump() {
    const living = this.threads.filter((thread) => thread.worker === undefined || thread.deathTime === undefined);
    const complaints = this.threads.flatMap(({ log }) => log.complaints).map((text) => `  complaint: ${text}`);
    return [describeMutexes(this.actor), ...living.map(describeThread), ...complaints].join('\n');
  }
};
