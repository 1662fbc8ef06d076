// A `sablock run` inside of others, as their variable names them: which of them keeps the lock from it. No process is started.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { findEnded, findOuter, findPlace, inside } = require('../../lib/cli/nested.js');
const { binding } = require('../../lib/engine/thread.js');
const { createFolder } = require('../helpers/folder.js');
const { needs } = require('../helpers/runtime.js');

/** No process has a number like this. */
const NO_PID = 2 ** 30;

test('of outer runs only those count that live, and hold the lock, also where no system tells when they began', {
  ...needs('preloading'),
}, (t) => {
  const directory = createFolder(t);
  let holders = [{ pid: process.pid }];
  // As another process sees it.
  t.mock.method(binding, 'fileHolders', () => holders);
  t.after(() => delete process.env.SABLOCK_RUN);
  const place = findPlace(directory, 'job');
  const [own] = JSON.parse(inside(place).SABLOCK_RUN);
  const elsewhere = findPlace(createFolder(t), 'job');
  /** The places among these of the one that keeps it out, and of those that have ended. */
  const find = (...all) => {
    process.env.SABLOCK_RUN = JSON.stringify(all.map((each, at) => ({ ...own, ...each, at })));
    return [findOuter(place)?.at, findEnded(place).map(({ at }) => at)];
  };
  const ended = { pid: NO_PID, start: null };
  for (const [what, all, expected] of [
    ['the process that holds it', [{}], [0, []]],
    ['the same, which may have begun at any time', [{ start: null }], [0, []]],
    ['a process that lives, and does not hold it', [{ pid: process.ppid, start: null }], [undefined, []]],
    ['one that lives, and shares it', [{ pid: process.ppid, start: null, mode: 'shared' }], [0, []]],
    ['one that has ended', [ended], [undefined, [0]]],
    ['one that has ended, whose number another has', [{ start: 'never' }], [undefined, [0]]],
    ['one that shared it, and has ended', [{ ...ended, mode: 'shared' }], [undefined, []]],
    ['one of another name', [{ name: 'other' }, { ...ended, name: 'other' }], [undefined, []]],
    ['one of another directory', [{ key: elsewhere.key }, { ...ended, key: elsewhere.key }], [undefined, []]],
    ['several', [{ ...ended, name: 'other' }, ended, {}, ended], [2, [1, 3]]],
  ]) {
    assert.deepEqual(find(...all), expected, what);
  }
  holders = [];
  assert.deepEqual(find({}), [undefined, []], 'one that lives, and does not hold it any more');
});
