'use strict';
// The mutant that is on, for each file of `lib` in which some are planted: `SABLOCK_MUTANT` is its number. While none is,
// `SABLOCK_REACHED` names a file for the numbers of those that are asked for.

const fs = require('node:fs');

const { appendFileSync } = fs;
const { SABLOCK_MUTANT, SABLOCK_REACHED } = process.env;
const MOST = 1 << 16;

exports.on = Number(SABLOCK_MUTANT ?? 0);
/** No function is called for those that are seen: at the end of the stack none can begin. */
exports.seen = new Uint8Array(MOST).fill(SABLOCK_REACHED === undefined ? 1 : 0);
exports.reach = (number) => {
  exports.seen[number] = 1;
  appendFileSync(SABLOCK_REACHED, `${number}\n`);
};
