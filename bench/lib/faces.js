'use strict';
// wait, notify and waitAsync: this package's, and the built-in ones.

const path = require('node:path');

const FACES = {
  sablock: () => require(process.env.SABLOCK_BENCH_PACKAGE ?? path.join(__dirname, '..', '..')),
  Atomics: () => Atomics,
};

exports.loadFace = (name) => FACES[name]();
