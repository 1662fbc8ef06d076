// This thread's one state: its agent id and its pending waits. Everybody gets the binding from here.
//
// However often the package is loaded in a thread (test runners clear the require cache), all loads work on the object
// that the first one made: one agent, one table of waits, one order. A thread is an environment of Node.js here: those that run
// several on one thread of the system have one agent in each.

const { isMainThread, receiveMessageOnPort, threadId } = require('node:worker_threads');
const clock = require('../load/clock.js');
const binding = require('../load/binary.js');

const { Fence, IsForHold, Token } = binding.Field;

/** The record of the last call of the binding, by `binding.Field`; shared memory, which nothing can detach. */
const newRecord = () => new Float64Array(new SharedArrayBuffer(8 * binding.RECORD_LENGTH));

/** Tokens are small, and those that are free are given again: a chunk has 256 of them. */
const CHUNK_BITS = 8;
const CHUNK_MASK = (1 << CHUNK_BITS) - 1;

/** Some of a thread's waits. */
class Chunk {
  waits = [];
  size = 0;
}

class Thread {
  /** The agent's id in lock words; set by the binding. */
  id = 0;
  /** The holds that it watches, once there are subscribers; see diagnosis.js. */
  holds = null;
  /** Guards note it when they are made; it changes when a guard's hold is lent to a wait. See `src/clients/lent.rs`. */
  era = 1;
  /** Whether such a hold may be away, lost, or watched. While there is none, a guard knows that its hold is with it. */
  hasAway = false;
  /** The waits that such holds are lent to, by the binding's number of the hold. */
  lent = new Map();
  /** Kinds of the cycle in the record, if subscribers were called since; null otherwise. */
  cycleKinds = null;
  /** Warnings of abandoned locks, once there are any; see abandonment.js. */
  warnings = null;
  /** Holds that words cannot say, once there are any; see register.js. */
  register = null;
  /** The memory of that, which stays until the thread ends. */
  chunks = [];
  /** Holds of names, once there are any; see ../named/held-lock.js. */
  held = null;
  /** Its requests to stores, once there are any; see ../stores/outer.js. */
  stores = null;
  /** The desk that serves them. */
  deskNumber = -1;
  /** The desk that it serves, if it is a lock worker; see ../stores/worker.js. */
  desk = null;
  /** The words of its locks that have names; see names.js. */
  named = null;
  /** The part that swaps and watches, while the lock doctor is on; see lib/doctor. */
  doctor = null;
  /** The result of its `start()`. */
  publicDoctor = null;
  /** The classes of its primitives by their names, and what leads from their objects to their words: for the lock doctor. */
  classes = [];
  words = new WeakMap();
  /** The bindings of all loads, and the file of each that this is: for the lock doctor too. */
  copies = [];
  /** The kind of words that do not say it, since there may be millions: `{ type, ask }`, by the primitive that has such words. */
  plain = null;
  /** Written by the binding. */
  record = newRecord();
  /** The same, for what has 64 bits. */
  #integers = new BigUint64Array(this.record.buffer);
  /** The number of waits for locks that are pending. While there are any, `lockAsync` leaves its fast path to those before it. */
  pending = 0;
  /** The number of waits of any kind. */
  #size = 0;
  /** The number of those that keep the event loop alive. */
  #refs = 0;
  /** By token, in chunks, so that memory follows their number: an array alone keeps its high-water mark. */
  #waits = [new Chunk()];
  /** Always settled, to make microtasks with: `queueMicrotask` costs an async resource each time. */
  #settled = Promise.resolve();
  /** A microtask that drains is on its way. */
  #drainsSoon = false;
  #drain = () => this.drain();
  /** Its loop has slept, and the next turn will say so. */
  #turnsSoon = false;
  #turn = () => {
    this.#turnsSoon = false;
    binding.turned();
  };

  /**
   * Takes in the wait that the binding has just queued. A wait for a lock is counted as pending before it is queued:
   * if JS is interrupted before it comes here, `drain` still knows that there is something to do.
   */
  add(wait) {
    // An integer: as what the array has, a double, it would be an object of its own.
    const token = this.record[Token] | 0;
    wait.token = token;
    const number = token >>> CHUNK_BITS;
    this.#waits[number] ??= new Chunk();
    const chunk = this.#waits[number];
    chunk.waits[token & CHUNK_MASK] = wait;
    chunk.size += 1;
    this.#size += 1;
    if (wait.ref && this.#refs++ === 0) binding.keepAlive(true);
  }

  /** That which the last call of the binding has granted. */
  get fence() {
    return this.#integers[Fence];
  }

  /** Whether the wait is pending. */
  has(wait) {
    return this.#at(wait.token) === wait;
  }

  #at(token) {
    return this.#waits[token >>> CHUNK_BITS]?.waits[token & CHUNK_MASK];
  }

  /** Whether one of the pending waits is for the word's lock; takes time in proportion to their number. */
  isWaitingFor(word) {
    const { byteOffset } = word;
    const isSame = (other) => other.byteOffset === byteOffset && binding.address(other) === binding.address(word);
    return this.#waits.some((chunk) => chunk?.waits.some((wait) => wait?.isForLock && isSame(wait.word)));
  }

  /**
   * Takes in a class of primitives; `wordOf` returns the words of its objects. However often it is loaded, it may be collected.
   * A bundler may have changed the name that the class has itself.
   */
  addClass(name, type, wordOf) {
    this.classes = this.classes.filter(([, reference]) => reference.deref() !== undefined);
    this.classes.push([name, new WeakRef(type)]);
    this.words.set(type, wordOf);
    this.doctor?.added(name, type, wordOf);
  }

  /** Takes in a load of the package. */
  addCopy(copy, file) {
    this.copies = this.copies.filter(([reference]) => reference.deref() !== undefined);
    this.copies.push([new WeakRef(copy), file]);
    this.doctor?.addedCopy(copy, file);
  }

  /** Whether the thread's waits keep its event loop alive; the name is that of Node's handles, by which tools ask. */
  hasRef() {
    return this.#refs > 0;
  }

  /** Takes a pending wait back; false if it is over. */
  cancel(wait) {
    if (!this.has(wait) || !binding.cancel(wait.token)) return false;
    this.#remove(wait);
    return true;
  }

  #remove(wait) {
    const number = wait.token >>> CHUNK_BITS;
    const chunk = this.#waits[number];
    chunk.waits[wait.token & CHUNK_MASK] = undefined;
    chunk.size -= 1;
    this.#size -= 1;
    if (wait.isForLock) this.pending -= 1;
    if (wait.ref && --this.#refs === 0) binding.keepAlive(false);
    if (chunk.size === 0 && number > 0) this.#waits[number] = undefined;
  }

  /** Settles the waits that are over. The users' code that awaits them comes in the microtasks behind it. */
  drain() {
    this.#drainsSoon = false;
    let status = binding.next();
    for (; status >= 0; status = binding.next()) {
      const wait = this.#at(this.record[Token]);
      if (wait === undefined) {
        // Its lockAsync() was interrupted, by a `vm` timeout for one, before anybody got the promise.
        binding.refuse();
        if (this.record[IsForHold] === 1) this.pending -= 1;
        continue;
      }
      this.#remove(wait);
      try {
        wait.settle(status);
      } catch (error) {
        // A patched signal threw: an uncaught error of its own, and no reason to let the other waits wait.
        clock.throwLater(error);
      }
    }
    if (status === binding.SLEPT && !this.#turnsSoon) {
      clock.setImmediate(this.#turn).unref();
      this.#turnsSoon = true;
    }
    this.desk?.drain();
    const due = isMainThread ? binding.nextDueDesk() : -1;
    if (due >= 0) require('./lock-worker.js').startDue(due);
    this.held?.drain();
  }

  /**
   * Drains in a microtask: the word that is about to be freed may be for one of this thread's own waits.
   * Until then it is free, and others may take it. Which word that is, the lock doctor wants to know.
   *
   * Users' code may run in this, in a patched `then` or a hook of promises: who has looked whether its hold is there looks again.
   */
  drainSoon(_word) {
    if (this.pending === 0 || this.#drainsSoon) return;
    try {
      this.#settled.then(this.#drain);
      // Last: `then` may fail for want of stack.
      this.#drainsSoon = true;
    } catch (error) {
      // A patched `then` threw: an uncaught error of its own, and no reason to keep what is about to be freed.
      binding.wake();
      if (!(error instanceof RangeError)) clock.throwLater(error);
    }
  }
}

const fresh = new Thread();
/** A blocked thread calls this between two slices, to see whether it can still run JS; must not throw. */
const pause = () => fresh.holds?.look();
/**
 * A blocked thread calls this when it has got what it waited for, to see whether its code will have it. Calls, so that V8
 * looks whether the thread is being terminated: code without a call need not.
 */
const look = () => ends(fresh);
const ends = (state) => state.id;
// The environment is known by a function that it has one of, and that no program has a reason to replace.
const thread = binding.attach(threadId, receiveMessageOnPort, fresh, fresh.record, () => fresh.drain(), pause, look);
thread.addCopy(binding, __filename);

exports.binding = binding;
/** Whether a call of the binding got what it asked for. */
exports.isGranted = (status) => status === binding.GRANTED || status === binding.GRANTED_ABANDONED;
exports.isMainThread = isMainThread;
exports.thread = thread;
