// The runs under Wine and qemu judge what a test file did by the list of what is not sablock's fault.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { judge } = require('../../scripts/platforms/foreign.js');

const FAULTS = [
  { file: 'a', test: 'links', why: 'there are none' },
  { file: 'b', why: 'it does not start' },
];
const output = (...lines) => [...lines, '1..9', `# tests ${lines.length}`].join('\r\n');

test('what is expected is right', () => {
  assert.deepEqual(judge('other', FAULTS, { end: 0, text: output('ok 1 - one', 'ok 2 - two # SKIP why') }), []);
  assert.deepEqual(judge('a', FAULTS, { end: 1, text: output('ok 1 - one', 'not ok 2 - links') }), []);
  assert.deepEqual(judge('b', FAULTS, { end: 1, text: '' }), []);
});

for (const [what, file, end, text, wrong] of [
  ['a test that fails and is not in the list', 'a', 1, output('not ok 1 - one', 'not ok 2 - links'), /failed: one$/],
  ['a test in the list that passes', 'a', 0, output('ok 1 - links'), /passed, and is in the list of faults: links$/],
  ['a test in the list that is skipped', 'a', 0, output('ok 1 - links # SKIP'), /skipped, and is in the list/],
  ['a test in the list that there is not', 'a', 0, output('ok 1 - one'), /is not there, and is in the list/],
  ['a file in the list that passes', 'b', 0, output('ok 1 - one'), /b: passes, and is in the list/],
  ['a file that ends before its tests', 'other', 0, 'ok 1 - one', /other: ended with 0$/],
  [
    'a file that ends before its tests, though its known fault was seen',
    'a',
    'SIGKILL',
    'not ok 1 - links',
    /SIGKILL$/,
  ],
  ['a file without tests', 'other', 0, output(), /other: ended with 0$/],
  ['an end that no test explains', 'other', 7, output('ok 1 - one'), /other: ended with 7$/],
]) {
  test(`${what} is wrong`, () => {
    const found = judge(file, FAULTS, { end, text });
    assert.equal(found.length, 1, found.join('\n'));
    assert.match(found[0], wrong);
  });
}
