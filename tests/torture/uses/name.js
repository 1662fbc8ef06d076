// Names, held alone or shared: one at a time, or all of them at once.

const { OUTCOMES } = require('../log.js');
const { ofKind } = require('../things.js');
const { Use } = require('../use.js');
const { KEEP } = require('../verbs.js');
const { drawLimit, drawOptions, inside, insideAsync, within } = require('./inside.js');

const ALL = ofKind('name');

exports.perform = async (actor, thing) => {
  const { random } = actor;
  const { faces } = actor.things;
  const things = random.chance(0.2) ? ALL : [thing];
  const isShared = random.chance(0.5);
  const isAsync = random.chance(actor.asyncShare);
  const isRun = random.chance(0.5);
  const verb = isAsync ? (isRun ? 'request' : 'acquireAsync') : isRun ? 'requestSync' : 'acquire';
  const ifAvailable = random.chance(0.15);
  const { given, timeout } = ifAvailable ? { timeout: 0 } : drawLimit(actor, isAsync);
  const uses = things.map((thing) => {
    // The second of several names is asked for when the first is held.
    const order = isAsync && things.length === 1 ? actor.nextOrder(thing) : -1;
    return new Use(actor, thing, `name.${isShared ? 'shared' : 'exclusive'}.${verb}`, { timeout, order });
  });
  const drawn = isAsync && !ifAvailable ? drawOptions(actor, uses[0], given) : { timeout: given };
  for (const use of uses) use.reason = uses[0].reason;
  const options = { ...drawn, ifAvailable, mode: isShared ? 'shared' : 'exclusive' };
  const held = new Held(actor, uses, isShared);
  if (!isShared && actor.strikes('hold-a-name-beside')) return held.pretend();
  const names = things.length === 1 ? faces[thing].name : things.map((each) => faces[each].name);
  const { locks } = faces[thing];
  if (!isRun) return held.acquire(() => locks[verb](names, options));
  return held.run((fn) => locks[verb](names, options, fn), isAsync);
};

/** Holds it for ever, if it can be had at once. */
exports.keep = (actor, thing, mode) => {
  const { locks, name } = actor.things.faces[thing];
  const use = new Use(actor, thing, `name.${mode}.acquire`, { timeout: 0 });
  const held = new Held(actor, [use], mode === 'shared');
  return held.keep(() => locks.acquire(name, { mode, ifAvailable: true }));
};

class Held {
  #actor;
  #uses;
  #isShared;
  /** The locks, in the order of the uses, while they are held. */
  #locks = null;

  constructor(actor, uses, isShared) {
    this.#actor = actor;
    this.#uses = uses;
    this.#isShared = isShared;
  }

  #enter(locks) {
    this.#locks = locks;
    for (const [index, use] of this.#uses.entries()) {
      const { abandoned } = locks[index];
      if (this.#isShared) use.beside(abandoned);
      else use.alone(abandoned);
      use.held({ abandoned: Number(abandoned && !this.#actor.strikes('unmark-a-name')) });
    }
  }

  #leave() {
    for (const [index, use] of this.#uses.entries()) {
      const lock = this.#locks[index];
      if (this.#isShared) use.beside(lock.abandoned);
      else {
        if (lock.abandoned && this.#actor.random.chance(0.5)) {
          use.clearing();
          lock.markConsistent();
        }
        use.aloneNoMore();
      }
      use.leaving();
    }
  }

  #freed() {
    for (const use of this.#uses) use.freed();
  }

  #failed(error) {
    // Its own code has failed.
    if (this.#locks !== null) throw error;
    for (const use of this.#uses) use.failed(error);
  }

  #refused() {
    for (const use of this.#uses) use.ended(OUTCOMES.TIMED_OUT);
  }

  /** As if it had been let in. */
  pretend() {
    this.#enter(this.#uses.map(() => ({ abandoned: false })));
    inside(this.#actor);
    this.#leave();
    this.#freed();
  }

  keep(call) {
    const got = call();
    if (got === null) this.#refused();
    else this.#enter([got]);
  }

  async acquire(call) {
    const [{ isAsync }] = this.#uses;
    let got;
    try {
      const pending = call();
      if (isAsync) for (const use of this.#uses) use.queued();
      got = isAsync ? await pending : pending;
    } catch (error) {
      this.#failed(error);
      return;
    }
    if (got === null) {
      this.#refused();
      return;
    }
    this.#enter(got.locks ?? [got]);
    const rests = this.#actor.random.chance(0.3);
    if ((rests ? await insideAsync(this.#actor) : inside(this.#actor)) === KEEP) await new Promise(() => {});
    this.#leave();
    got.unlock();
    this.#freed();
  }

  async run(call, isAsync) {
    const body = within(
      this.#actor,
      isAsync,
      (held) => this.#enter([held].flat()),
      () => this.#leave(),
    );
    try {
      const pending = call((held) => (held === null ? undefined : body(held)));
      if (isAsync) await pending;
    } catch (error) {
      this.#failed(error);
      return;
    }
    if (this.#locks === null) this.#refused();
    else this.#freed();
  }
}
