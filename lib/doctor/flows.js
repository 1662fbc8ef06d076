// Which holds a piece of code goes on with: what `await lock.lockAsync()` locks is held by the code after the `await`, and by what
// that calls. A library cannot set its caller's context, but it can see which promise goes on: the one that awaits the lock's.

const { createHook, executionAsyncId, executionAsyncResource } = require('node:async_hooks');

/** A property of the resource of each run of code: the last of the holds that it goes on with. */
const FLOW = Symbol('sablock flow');

/** What a promise stands for: a hold, once it is granted. */
class Grant {
  hold = null;
  /** Whether somebody may still grant it. */
  isPending = false;
  /** Of the promise, for async hooks. */
  id = undefined;
}

/** One hold, and those before it. */
class Flow {
  constructor(grant, before) {
    this.grant = grant;
    // Those that have ended go, or a loop would make a chain without end.
    this.before = current(before);
  }
}

/** The last one that is held; undefined for none. */
function current(flow) {
  let at = flow;
  while (at !== undefined && !at.grant.hold?.isActive) at = at.before;
  return at;
}

/** The flows of this thread. */
class Flows {
  /** What `await` of these promises goes on with, by their numbers. */
  #granted = new Map();
  /** What the thread holds, in order. */
  #active;
  /** The promise that was made last, and its number, while somebody wants to know. */
  #isNumbering = false;
  #made = null;
  #number = 0;
  #hook = createHook({ init: (id, type, trigger, resource) => this.#init(id, type, trigger, resource) });

  constructor(active) {
    this.#active = active;
  }

  start() {
    this.#hook.enable();
  }

  stop() {
    this.#hook.disable();
    this.#granted.clear();
  }

  #init(id, type, trigger, resource) {
    if (this.#isNumbering && type === 'PROMISE') {
      this.#made = resource;
      this.#number = id;
    }
    if (this.#granted.size === 0 && this.#active.length === 0) return;
    let flow = current(executionAsyncResource()[FLOW]);
    // What the code that runs has locked itself, what begins here goes on with.
    const run = executionAsyncId();
    for (const hold of this.#active) {
      if (hold.segment === run && hold.owner === null) flow = new Flow(hold.ownGrant(), flow);
    }
    const grant = type === 'PROMISE' ? this.#granted.get(trigger) : undefined;
    if (grant !== undefined) flow = new Flow(grant, flow);
    if (flow !== undefined) resource[FLOW] = flow;
  }

  /** Runs `call`, which returns a promise. The code that awaits that goes on with what is granted. */
  awaitOf(grant, call) {
    this.#isNumbering = true;
    const promise = call();
    this.#isNumbering = false;
    if (promise === this.#made) {
      grant.id = this.#number;
      this.#granted.set(grant.id, grant);
    }
    this.#made = null;
    return promise;
  }

  /** Nothing was granted, or it is not held any more. */
  forget({ id }) {
    this.#granted.delete(id);
  }

  /** Whether the code that runs goes on with a hold. */
  has(hold) {
    for (let at = executionAsyncResource()[FLOW]; at !== undefined; at = at.before)
      if (at.grant.hold === hold) return true;
    return false;
  }
}

exports.Flows = Flows;
exports.Grant = Grant;
