// A thread that uses memory for a short time: makes a primitive, looks whether it is new, holds it, waits for it, hands it on, drops it.

const { setImmediate: nextTurn } = require('node:timers/promises');
const { parentPort, workerData } = require('node:worker_threads');
const { collector } = require('../../../__test__/helpers/collect.js');
const { binding } = require('../../../lib/engine/thread.js');
const { Random } = require('../choices.js');
const { KINDS } = require('./kinds.js');

/** Small ones of few sizes: the next is soon where one was. */
const SIZES = [8, 16, 64];
/** The number that are dropped between two collections. */
const BATCH = 40;
/** The number of things that somebody else has handed on, and this thread still uses, at most. */
const MOST_HANDED = 8;

const collect = collector();
const random = new Random(workerData.seed);
const names = Object.keys(KINDS);
const handed = [];

// Taking over what others have left is what it does all the time.
process.removeAllListeners('warning');

function fail(kind, text) {
  parentPort.postMessage({ failure: `a new ${kind}: ${text}` });
}

/** Nothing of who was there before. */
function expectNew(kind, made) {
  const { holders, waiters } = made.object.inspect();
  if (holders.length > 0 || waiters.length > 0) fail(kind, JSON.stringify({ holders, waiters }));
  if (made.isAbandoned?.() === true) fail(kind, 'it is abandoned');
  const taken = made.take();
  if (taken === null) fail(kind, 'it cannot be had');
  else taken();
}

/** Waits end by themselves, are taken back, or are granted; how many there were. */
function waitFor(made) {
  let waits = 0;
  const begin = (options) => {
    waits += 1;
    made.wait(options).catch(() => {});
  };
  const controller = new AbortController();
  if (random.chance(0.5)) begin({ timeout: random.below(4) });
  if (random.chance(0.5)) begin({ signal: controller.signal });
  if (random.chance(0.3)) begin({ signal: controller.signal, timeout: 50 });
  if (random.chance(0.7)) controller.abort();
  else setTimeout(() => controller.abort(), random.below(10));
  return waits;
}

/** Uses what may be in use elsewhere too. */
function use(made) {
  made.shut?.();
  const taken = random.chance(0.7) ? made.take() : null;
  const waits = random.chance(0.7) ? waitFor(made) : 0;
  // Some keep it: then it goes with its memory, or with its thread.
  if (taken !== null && random.chance(0.8)) {
    if (random.chance(0.5)) taken();
    else setTimeout(taken, random.below(5));
  }
  return waits;
}

function makeOne() {
  const kind = random.pick(names);
  const buffer = new SharedArrayBuffer(random.pick(SIZES));
  const made = KINDS[kind](buffer);
  expectNew(kind, made);
  const waits = use(made);
  if (random.chance(0.1)) parentPort.postMessage({ handed: { kind, buffer } });
  parentPort.postMessage({ address: binding.address(new Int32Array(buffer, 0, 1)), kind, waits });
}

parentPort.on('message', ({ kind, buffer }) => {
  handed.push(KINDS[kind](buffer));
  if (handed.length > MOST_HANDED) handed.shift();
});

async function main() {
  for (;;) {
    for (let number = 0; number < BATCH; number += 1) makeOne();
    for (const made of handed) use(made);
    await nextTurn();
    collect();
    // A buffer that was collected gives up its slots in a turn of its own.
    await nextTurn();
  }
}

main();
