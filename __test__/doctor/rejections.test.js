// Rejections are the user's affair: the doctor handles none, and hides none.

const assert = require('node:assert/strict');
const path = require('node:path');
const { test } = require('node:test');
const { PRELOAD, root, run } = require('../helpers/doctored-programs.js');
const { limit } = require('../helpers/limits.js');
const { needs } = require('../helpers/runtime.js');

const PROGRAM = path.join(root, '__test__', 'programs', 'unawaited.js');

test('whatever rejects and nobody awaits is an unhandledRejection, as without the doctor', {
  timeout: limit(60_000),
  ...needs('preloading'),
}, async () => {
  const [plain, doctored] = [await run([PROGRAM]), await run([...PRELOAD, PROGRAM])];
  assert.match(plain.stdout, /^abandoned mutex\.acquireAsync: unhandledRejection Error undefined no repair$/m);
  assert.deepEqual(doctored.stdout.split('\n'), plain.stdout.split('\n'));
});
