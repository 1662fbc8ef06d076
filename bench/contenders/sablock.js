'use strict';
// The package in this repository, or the one in the folder that SABLOCK_BENCH_PACKAGE names (`--against`, `--ablation`).

const path = require('node:path');

const root = process.env.SABLOCK_BENCH_PACKAGE ?? path.join(__dirname, '..', '..');

let Mutex;

module.exports = {
  name: 'sablock',
  root,
  entry: { require: root },
  load() {
    ({ Mutex } = require(root));
  },
  share: (count) => new SharedArrayBuffer(4 * count),
  open: (buffer, index) => new Mutex(buffer, 4 * index, { allowMainThread: true }),
};
