// The results of each verb of the package in the surroundings of `surroundings.js`, and whether they are those without any.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const path = require('node:path');
const { promisify } = require('node:util');
const { SURROUNDINGS } = require('../surroundings/surroundings.js');

const PROGRAM = path.join(__dirname, '..', 'programs', 'surrounded.js');

async function seenIn(name) {
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const { flags = [] } = SURROUNDINGS[name];
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, PROGRAM, name], { env }).catch(
    (error) => error,
  );
  return stdout.trimEnd().split('\n');
}

let plain;
const seenWithout = () => {
  plain ??= seenIn('nothing');
  return plain;
};

/** Expects the same, but of the lines that match `differs` only that a wait was aborted. */
async function expectTheSame(seen, differs) {
  const same = (line) => differs === undefined || !differs.test(line);
  assert.deepEqual(seen.filter(same), (await seenWithout()).filter(same));
  for (const line of seen.filter((each) => !same(each))) assert.match(line, /AbortError$/);
}

Object.assign(exports, { expectTheSame, seenIn, seenWithout });
