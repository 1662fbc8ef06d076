// The witness of `npm run torture:processes` finds what must not happen, and nothing in a log in which all is well.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { testify } = require('../../tests/torture/processes/witness.js');

/** Some steps are several lines. */
const testimonyOf = (steps) => testify(steps.flatMap((step) => step.split('\n')));
const violations = (...steps) => testimonyOf(steps).violations;

const asked = (who) => `W ${who} n0 exclusive - 0`;
const inside = (who, mark = '-', mode = 'exclusive') => `${asked(who)}\nB ${who} n0 ${mode} ${mark} 1`;
const left = (who) => `E ${who} n0 exclusive - 2`;
const repaired = (who) => `C ${who} n0 exclusive - 2`;

test('holds one after the other, and shared ones together, are well', () => {
  assert.deepEqual(
    violations(
      inside('1.0.0'),
      left('1.0.0'),
      inside('2.0.0', '-', 'shared'),
      inside('3.0.0', '-', 'shared'),
      left('2.0.0'),
      left('3.0.0'),
      inside('1.0.1'),
      left('1.0.1'),
    ),
    [],
  );
});

test('a holder that was killed inside, is reported, and repaired, is well', () => {
  const log = [inside('1.0.0'), 'K 1', inside('2.0.0', 'abandoned'), left('2.0.0')];
  assert.deepEqual(
    violations(...log, inside('3.0.0', 'abandoned'), repaired('3.0.0'), left('3.0.0'), inside('4.0.0'), left('4.0.0')),
    [],
  );
  const { 'killed inside': killed, reported } = testimonyOf(log);
  assert.deepEqual([killed, reported], [1, 1]);
});

for (const [what, log] of [
  ['two holders', [inside('1.0.0'), inside('2.0.0'), left('1.0.0'), left('2.0.0')]],
  ['two holders', [inside('1.0.0', '-', 'shared'), inside('2.0.0')]],
  ['two holders', [inside('1.0.0'), inside('2.0.0', '-', 'shared')]],
  ['unreported', [inside('1.0.0'), 'K 1', inside('2.0.0')]],
  ['unreported', [inside('1.0.0'), 'K 1', inside('2.0.0', 'abandoned'), left('2.0.0'), inside('3.0.0')]],
  ['lost', [inside('1.0.0'), left('2.0.0')]],
  ['waits for ever', [asked('1.0.0')]],
  ['went wrong', ['X 1 ended with 1']],
]) {
  test(`found: ${what} (${log.length} steps, the last is ${log.at(-1).split('\n').at(-1)})`, () => {
    assert.match(violations(...log)[0], new RegExp(`^${what}: `));
  });
}

test('found: those who share were not inside together, though nobody held the name alone', () => {
  const line = (what, who, ms, mode = 'shared') => `${what} ${who} n0 ${mode} - ${ms}`;
  const resident = [line('W', '1.0.0', 0), line('B', '1.0.0', 0)];
  const late = [line('W', '2.0.0', 1000), line('B', '2.0.0', 6000)];
  assert.match(violations(...resident, ...late)[0], /^not together: B 2\.0\.0 .* after 5000 ms/);
  assert.deepEqual(violations(...resident, 'R 2 - - - 5000', ...late), [], 'it was stopped');
  const alone = ['W', 'B', 'E'].map((what) => line(what, '3.0.0', 5000, 'exclusive'));
  assert.deepEqual(violations(...alone, ...late), [], 'it waited for who held it alone');
});
