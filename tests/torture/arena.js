// The shared memory of one round: the mutexes, what they guard, and the clock that all threads stamp their logs with.

const { createThings } = require('./things.js');

const CLOCK = 0;
const STOP = 1;
const CONTROLS = 16;
const FIRST_CONDITION = 960;
const FIRST_MUTEX = 1024;

class Arena {
  #controls;
  #start;

  /** `start`: a BigInt of nanoseconds, the zero of all times in the logs. */
  constructor({ memory, things, mutexes, conditions, stride, start }) {
    this.memory = memory;
    /** The memory of what is used beside mutexes and conditions; see things.js. */
    this.things = things;
    this.mutexes = mutexes;
    this.conditions = conditions;
    this.stride = stride;
    this.#start = start;
    this.#controls = new Int32Array(memory, 0, CONTROLS);
    /** Guarded by the mutex of the same index, and changed without atomics: overlapping holds show. */
    this.counters = new Int32Array(memory, 64, mutexes);
    /** The hold that is inside, as its holder wrote it; 0: none. Guarded likewise. */
    this.inside = new Int32Array(memory, 512, mutexes);
  }

  /** The parts that another thread needs to see the same arena. */
  get shared() {
    return {
      memory: this.memory,
      things: this.things,
      mutexes: this.mutexes,
      conditions: this.conditions,
      stride: this.stride,
      start: this.#start,
    };
  }

  /** One number more, for all threads: the order of everything that is logged. */
  tick() {
    return Atomics.add(this.#controls, CLOCK, 1) + 1;
  }

  get ticks() {
    return Atomics.load(this.#controls, CLOCK);
  }

  /** Milliseconds on the monotonic clock, the same in all threads. */
  now() {
    return Number(process.hrtime.bigint() - this.#start) / 1e6;
  }

  get isStopping() {
    return Atomics.load(this.#controls, STOP) !== 0;
  }

  stop() {
    Atomics.store(this.#controls, STOP, 1);
  }

  offset(mutex) {
    return FIRST_MUTEX + mutex * this.stride;
  }

  /** The mutex at a byte offset. */
  mutexAt(offset) {
    return (offset - FIRST_MUTEX) / this.stride;
  }

  word(mutex) {
    return new Int32Array(this.memory, this.offset(mutex), 1);
  }

  conditionOffset(condition) {
    return FIRST_CONDITION + condition * 4;
  }

  /** Zero, always. */
  condition(condition) {
    return new Int32Array(this.memory, this.conditionOffset(condition), 1);
  }

  /** Four words by which sabotage passes a cycle from one thread to another. */
  get passedCycle() {
    return this.#controls.subarray(8, 12);
  }
}

/** A new arena; at most 100 mutexes, `stride` bytes apart, and 16 conditions. */
exports.createArena = (mutexes, conditions, stride) => {
  const memory = new SharedArrayBuffer(FIRST_MUTEX + mutexes * stride);
  return new Arena({ memory, things: createThings(), mutexes, conditions, stride, start: process.hrtime.bigint() });
};

exports.Arena = Arena;
