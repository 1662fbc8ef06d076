// Calls the functions of the binding that the test names, `[name, ...arguments]`, or one of the actions below.

const { binding } = require('../../lib/engine/thread.js');
const { takeSteps } = require('../helpers/inside.js');
const { listen } = require('../helpers/seam.js');

listen();
const actions = {
  ...binding,
  store: (words, value) => Atomics.store(words, 0, value),
  /** As soon as so many have come to it. */
  together(words, count, name, ...args) {
    Atomics.add(words, 0, 1);
    while (Atomics.load(words, 0) < count);
    return actions[name](...args);
  },
};
takeSteps(([name, ...args]) => actions[name](...args));
