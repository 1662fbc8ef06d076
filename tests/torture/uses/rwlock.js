// Reading and writing, raw and with guards, and turning one into the other.

const { Use } = require('../use.js');
const { drawLimit, drawOptions, hold, inside, within } = require('./inside.js');

const SYNC = ['lock', 'lock', 'tryLock', 'acquire', 'tryAcquire', 'executeLockedSync'];
const ASYNC = ['lockAsync', 'acquireAsync', 'executeLocked'];

exports.perform = async (actor, thing) => {
  const { random } = actor;
  const rw = actor.things.faces[thing];
  const mode = random.chance(0.6) ? 'read' : 'write';
  const isAsync = random.chance(actor.asyncShare);
  const verb = random.pick(isAsync ? ASYNC : SYNC);
  const isTry = verb.startsWith('try');
  const { given, timeout } = drawLimit(actor, isAsync);
  const order = isAsync ? actor.nextOrder(thing) : -1;
  const use = new Use(actor, thing, `${mode}.${verb}`, { timeout: isTry ? 0 : timeout, order });
  const holds = new Holds(actor, thing, rw, use, mode === 'write');
  if (mode === 'write' && actor.strikes('write-beside')) return holds.pretend();
  const options = isAsync ? drawOptions(actor, use, given) : { timeout: given };
  const lock = rw[mode];
  if (verb.startsWith('execute')) return holds.execute((fn) => lock[verb](fn, options), isAsync);
  const isGuarded = /acquire/i.test(verb);
  return hold(actor, use, () => (isTry ? lock[verb]() : lock[verb](options)), {
    enter: () => holds.entered(),
    leave: (got) => holds.leaving(isGuarded ? got : undefined),
    release: (got) => {
      if (isGuarded) got.unlock();
      else rw[mode].unlock();
    },
  });
};

/** One hold after the other: each turn from reading to writing, or back, is another. */
class Holds {
  #actor;
  #thing;
  #rw;
  #use;
  #isWriter;

  constructor(actor, thing, rw, use, isWriter) {
    this.#actor = actor;
    this.#thing = thing;
    this.#rw = rw;
    this.#use = use;
    this.#isWriter = isWriter;
  }

  /** Returns what is logged. */
  entered() {
    const isMarked = this.#rw.abandoned;
    if (this.#isWriter) this.#use.alone(isMarked);
    else this.#use.beside(isMarked);
    const { strikes } = this.#actor;
    return { abandoned: Number((isMarked && !strikes('unmark-use')) || strikes('mark-use')) };
  }

  /** As if it had been let in. */
  pretend() {
    this.#use.held(this.entered());
    inside(this.#actor);
    this.#leave();
    this.#use.freed();
  }

  /** Before it is given back, in another mode now and then. Returns whether that is done. */
  leaving(guard) {
    const { random } = this.#actor;
    if (!random.chance(0.2)) {
      this.#stop();
      return false;
    }
    const hold = guard ?? this.#rw;
    if (this.#isWriter) this.#downgrade(hold);
    else if (!this.#upgrade(hold)) return false;
    inside(this.#actor);
    this.#leave();
    if (guard) guard.unlock();
    else this.#rw[this.#isWriter ? 'write' : 'read'].unlock();
    this.#use.freed();
    return true;
  }

  #downgrade(hold) {
    this.#leave();
    const next = new Use(this.#actor, this.#thing, 'downgrade');
    hold.downgrade();
    this.#use.freed();
    this.#use = next;
    this.#isWriter = false;
    next.held(this.entered());
  }

  #upgrade(hold) {
    const next = new Use(this.#actor, this.#thing, 'tryUpgrade', { timeout: 0 });
    this.#use.leaving();
    if (!hold.tryUpgrade()) {
      next.failed({ code: 'ERR_LOCK_TIMEOUT' });
      this.#use.staying();
      return false;
    }
    this.#use.freed();
    this.#use = next;
    this.#isWriter = true;
    next.held(this.entered());
    return true;
  }

  /** Does what a writer does last. */
  #stop() {
    if (!this.#isWriter) return this.#use.beside(this.#rw.abandoned);
    if (this.#rw.abandoned && this.#actor.random.chance(0.5)) {
      this.#use.clearing();
      this.#rw.markConsistent();
    }
    return this.#use.aloneNoMore();
  }

  #leave() {
    this.#stop();
    this.#use.leaving();
  }

  async execute(call, isAsync) {
    let isIn = false;
    const enter = () => {
      isIn = true;
      this.#use.held(this.entered());
    };
    try {
      if (isAsync && this.#actor.strikes('lose-use')) await new Promise(() => {});
      const pending = call(within(this.#actor, isAsync, enter, () => this.#leave()));
      if (isAsync) await pending;
    } catch (error) {
      if (isIn) throw error;
      this.#use.failed(error);
      return;
    }
    this.#use.freed();
  }
}
