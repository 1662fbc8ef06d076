'use strict';
// For ../inlining.js: runs one of the loops of pairs that nobody else wants until V8 has long been done with it, marks that in
// V8's own output, and runs it as long again.

const vm = require('node:vm');
const sablock = require('../contenders/sablock');
const { PAIRS: PERMITS } = require('../scenarios/semaphore');
const { BARE, PAIRS } = require('../scenarios/uncontended');

const [, , pair] = process.argv;
const TURNS = 10_000;
const CALLS = 300;
const READ = 'read.';

/** The loop of that name, and what it runs on. */
function loopOf(name) {
  if (name === undefined) return [BARE.loop, new Int32Array(new SharedArrayBuffer(4))];
  if (name.startsWith(READ)) {
    return [PAIRS[name.slice(READ.length)].loop, sablock.rwlock.open(sablock.rwlock.share()).read];
  }
  if (name in PERMITS) return [PERMITS[name].loop, sablock.semaphore.open(sablock.semaphore.share(1), 1)];
  return [PAIRS[name].loop, sablock.open(sablock.share(1), 0)];
}

function run(loop, on) {
  for (let i = 0; i < CALLS; i++) {
    if (loop(on, TURNS) !== TURNS) throw new Error(`${pair}: some of the holds did not happen`);
  }
}

sablock.load();
const [loop, on] = loopOf(pair);
run(loop, on);
vm.runInThisContext('%DebugPrint("warm")');
run(loop, on);
