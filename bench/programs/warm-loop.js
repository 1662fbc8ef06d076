'use strict';
// For ../inlining.js: runs one of the loops of the uncontended scenario until V8 has long been done with it, marks that in
// V8's own output, and runs it as long again.

const vm = require('node:vm');
const sablock = require('../contenders/sablock');
const { BARE, PAIRS } = require('../scenarios/uncontended');

const [, , pair] = process.argv;
const TURNS = 10_000;
const CALLS = 300;

function run(loop, on) {
  for (let i = 0; i < CALLS; i++) {
    if (loop(on, TURNS) !== TURNS) throw new Error(`${pair}: some of the holds did not happen`);
  }
}

sablock.load();
const [loop, on] = pair
  ? [PAIRS[pair].loop, sablock.open(sablock.share(1), 0)]
  : [BARE.loop, new Int32Array(new SharedArrayBuffer(4))];
run(loop, on);
vm.runInThisContext('%DebugPrint("warm")');
run(loop, on);
