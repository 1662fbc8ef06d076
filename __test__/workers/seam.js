// Calls the functions of the binding that the test names, `[name, ...arguments]`.

const { binding } = require('../../lib/engine/thread.js');
const { takeSteps } = require('../helpers/inside.js');
const { listen } = require('../helpers/seam.js');

listen();
takeSteps(([name, ...args]) => binding[name](...args));
