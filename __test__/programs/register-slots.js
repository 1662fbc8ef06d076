// Uses the register of holds in the way that the first argument names, with the garbage collector at hand, and prints what came of it.

const [, , name] = process.argv;

/** In the place of the garbage collector, where its order of things is the subject. */
const references = [];
const finalized = [];
let finalize;
if (name === 'again') {
  globalThis.WeakRef = class {
    isGone = false;
    constructor(target) {
      this.target = target;
      references.push(this);
    }
    deref() {
      return this.isGone ? undefined : this.target;
    }
  };
  globalThis.FinalizationRegistry = class {
    constructor(callback) {
      finalize = callback;
    }
    register(_, held) {
      finalized.push(held);
    }
  };
}

const { setTimeout: sleep } = require('node:timers/promises');
const { Worker } = require('node:worker_threads');
const { Latch } = require('../..');
const { thread } = require('../../lib/engine/thread.js');

const MANY = 2000;
const CHUNK_HOLDS = (4096 - 2 * 128) / 8;
/** The number of buffers that may keep their memory, of those that should not. */
const MOST = MANY / 10;

/** Collects garbage until `isThere`; returns whether it came to that. */
const collectUntil = async (isThere) => {
  for (let round = 0; round < 500 && !isThere(); round++) {
    // A buffer that deref() has returned lives until the end of the turn.
    await sleep(1);
    globalThis.gc();
    await sleep(1);
  }
  return isThere();
};

const use = (buffer, byteOffset = 0) => {
  const latch = new Latch(buffer, byteOffset);
  return latch.enter().leave();
};

const cases = {
  /** A slot that nobody uses any more is given to another primitive: memory does not grow. */
  async reuse() {
    let left = 0;
    for (let round = 0; round < 5; round++) {
      const used = [];
      for (let count = 0; count < CHUNK_HOLDS - 1; count++) used.push(new WeakRef(new SharedArrayBuffer(8)));
      for (const reference of used) {
        const buffer = reference.deref();
        if (buffer !== undefined) left += use(buffer) ? 1 : 0;
      }
      await collectUntil(() => used.filter((reference) => reference.deref() !== undefined).length < 20);
      // Finalizers run in tasks of their own.
      await sleep(20);
    }
    return { left: left > 0, chunks: thread.chunks.length <= 2 };
  },

  /** More slots at the same time than a chunk has. */
  growth() {
    const buffer = new SharedArrayBuffer(4 * MANY);
    const entries = Array.from({ length: MANY }, (_, index) => new Latch(buffer, 4 * index).enter());
    const counts = new Int32Array(buffer);
    const holders = entries.map(({ latch }) => latch.inspect().holders);
    return {
      entered: counts.every((count) => count === 1),
      held: holders.every(([holder], index) => holder.count === 1 && holders[index].length === 1),
      chunks: thread.chunks.length,
      left: entries.every((entry) => entry.leave()) && counts.every((count) => count === 0),
    };
  },

  /** A buffer that only a slot refers to is kept while its primitive is used, and no longer. */
  async collection() {
    const buffers = [];
    const kept = [];
    for (let count = 0; count < MANY; count++) {
      const buffer = new SharedArrayBuffer(64);
      use(buffer);
      buffers.push(new WeakRef(buffer));
      if (count % 100 === 0) kept.push(new Latch(buffer).enter());
    }
    const alive = () => buffers.filter((reference) => reference.deref() !== undefined).length;
    const isCollected = await collectUntil(() => alive() < MOST);
    return {
      isCollected,
      kept: kept.length,
      alive: alive() >= kept.length,
      left: kept.every((entry) => entry.leave()),
    };
  },

  /** A hold whose objects are gone stays: whoever comes back to its memory finds it in the same slot. */
  async outlives() {
    const buffer = new SharedArrayBuffer(8);
    const reference = new WeakRef(new Latch(buffer));
    reference.deref().enter();
    const isCollected = await collectUntil(() => reference.deref() === undefined);
    await sleep(20);
    globalThis.gc();
    const latch = new Latch(buffer);
    const [before] = latch.inspect().holders;
    const entry = latch.enter();
    const [during] = latch.inspect().holders;
    const isLeft = entry.leave();
    return { isCollected, before: before.count, during: during.count, isLeft, count: latch.count };
  },

  /** And at the end of the thread it goes back, though its objects are gone. */
  async 'thread end'() {
    const buffer = new SharedArrayBuffer(8);
    const code = `
      const { workerData } = require('node:worker_threads');
      const { Latch } = require(${JSON.stringify(require.resolve('../..'))});
      const reference = new WeakRef(new Latch(workerData));
      reference.deref().enter();
      const wait = async () => {
        for (let round = 0; round < 500 && reference.deref() !== undefined; round++) {
          await new Promise((resolve) => setTimeout(resolve, 1));
          globalThis.gc();
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
        if (reference.deref() === undefined) new Int32Array(workerData)[1] = 1;
      };
      wait();
    `;
    const worker = new Worker(code, { eval: true, workerData: buffer });
    const words = new Int32Array(buffer);
    await new Promise((resolve) => worker.once('exit', resolve));
    return { isCollected: words[1] === 1, count: words[0] };
  },

  /** A slot that is collected, taken up again and collected again before any finalizer has run. */
  again() {
    const buffer = new SharedArrayBuffer(16);
    for (let round = 0; round < 2; round++) {
      use(buffer);
      for (const reference of references) reference.isGone = true;
    }
    for (const held of finalized) finalize(held);
    // If the slot had been given up twice, these two would share it.
    const latches = [8, 12].map((byteOffset) => new Latch(buffer, byteOffset));
    for (const latch of latches) latch.enter();
    return { holders: latches.map((latch) => latch.inspect().holders[0].count) };
  },
};

const main = async () => console.log(JSON.stringify(await cases[name]()));

main();
