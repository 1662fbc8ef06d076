// The functions under test, and the built-in ones beside them. `waiting` returns how many wait for an element.

const v8 = require('node:v8');
const { needs } = require('../helpers/runtime.js');

/** V8's own count, which only its internal syntax shows (to be allowed on Deno's command line). */
const countBuiltin = () => {
  v8.setFlagsFromString('--allow-natives-syntax');
  const count = new Function('int32Array', 'return %AtomicsNumWaitersForTesting(int32Array, 0)');
  return ({ buffer, byteOffset, BYTES_PER_ELEMENT }, index) =>
    count(new Int32Array(buffer, byteOffset + BYTES_PER_ELEMENT * index, 1));
};

const load = {
  sablock() {
    const { wait, notify, waitAsync } = require('../..');
    const { binding } = require('../../lib/engine/thread.js');
    return { wait, notify, waitAsync, waiting: binding.waiting };
  },
  Atomics() {
    const { wait, notify, waitAsync } = Atomics;
    return { wait, notify, waitAsync, waiting: countBuiltin() };
  },
};

exports.faceNames = Object.keys(load);
exports.neededBy = (name) => (name === 'Atomics' ? needs('waiters counted') : needs());
exports.loadFace = (name) => load[name]();
