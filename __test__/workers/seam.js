// Calls the functions of the binding that the test names, `[name, ...arguments]`, or `['store', words, value]`.

const { binding } = require('../../lib/engine/thread.js');
const { takeSteps } = require('../helpers/inside.js');
const { listen } = require('../helpers/seam.js');

listen();
const actions = { ...binding, store: (words, value) => Atomics.store(words, 0, value) };
takeSteps(([name, ...args]) => actions[name](...args));
