'use strict';
// Loaded before the doctor by `npm run test:doctored`: what its notes fail with, and `quietly()` keeps from the caller, is written into
// the file that SABLOCK_SWALLOWED names, a line each. Where the stack ends they may fail.

const fs = require('node:fs');
const Module = require('node:module');

const DIAGNOSIS = /[\\/]lib[\\/]engine[\\/]diagnosis\.js$/;
const CATCH = /\} catch \{\n {4}return null;/;

const { appendFileSync } = fs;
const { stringify } = JSON;
const { argv } = process;
const { SABLOCK_SWALLOWED } = process.env;
const { _compile: compile } = Module.prototype;

Object.defineProperty(globalThis, Symbol.for('sablock.swallowed'), {
  value: (error) => {
    if (error instanceof RangeError) return;
    appendFileSync(SABLOCK_SWALLOWED, `${stringify({ program: argv[1], error: error?.stack ?? String(error) })}\n`);
  },
});

Module.prototype._compile = function (source, filename, ...rest) {
  if (!DIAGNOSIS.test(filename)) return compile.call(this, source, filename, ...rest);
  if (!CATCH.test(source)) throw new Error('quietly() is not where it was');
  // On the line of the other, so that no place in a stack changes.
  const loud = source.replace(
    CATCH,
    `} catch (error) { try { globalThis[Symbol.for('sablock.swallowed')](error); } catch {}
    return null;`,
  );
  return compile.call(this, loud, filename, ...rest);
};
