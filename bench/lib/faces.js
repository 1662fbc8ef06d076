'use strict';
// wait, notify and waitAsync: this package's, the built-in ones, and the system's futex, which no loop can await.

const path = require('node:path');
const { futex } = require('./bare');

const FACES = {
  sablock: () => require(process.env.SABLOCK_BENCH_PACKAGE ?? path.join(__dirname, '..', '..')),
  Atomics: () => Atomics,
  futex,
};

exports.loadFace = (name) => FACES[name]();
