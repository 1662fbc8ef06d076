// The faults that `scripts/house.js` finds in a tree that is made for it.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');

const HOUSE = path.join(__dirname, '../../scripts/house.js');
/** A tree in which everything is in order: arrows down, in each of its three parts. */
const TREE = {
  'src/lib.rs': 'pub mod agents;\npub mod engine;\nmod node;\n',
  'src/agents/mod.rs': 'pub struct Agent;\n',
  'src/engine/mod.rs': 'mod queue;\npub use queue::Queue;\n',
  'src/engine/queue.rs': 'use crate::agents::Agent;\npub struct Queue(Agent);\n',
  'src/node/mod.rs': 'use crate::engine::Queue;\n',
  'tests/model/src/lib.rs': 'mod word;\n',
  'tests/model/src/word.rs': 'pub const FREE: u32 = 0;\n',
  'lib/primitives/mutex.js': "const { Wait } = require('../engine/wait.js');\nclass Mutex extends ExclusiveLock {}\n",
  'lib/primitives/latch.js': 'class Latch extends SharedPrimitive {}\n',
  'lib/engine/wait.js': 'exports.Wait = class {};\n',
};
const LONGEST = '\n'.repeat(400);

/** Returns what is said about the tree with these changes, each file's text by its name. */
function complaints(changes) {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-house-'));
  try {
    for (const [name, text] of Object.entries({ ...TREE, ...changes })) {
      fs.mkdirSync(path.join(root, path.dirname(name)), { recursive: true });
      fs.writeFileSync(path.join(root, name), text);
    }
    const { status, stderr } = spawnSync(process.execPath, [HOUSE, root], { encoding: 'utf8' });
    assert.equal(status, stderr === '' ? 0 : 1, stderr);
    return stderr.split('\n').filter(Boolean);
  } finally {
    fs.rmSync(root, { recursive: true });
  }
}

/** The complaint about a circle with these arrows. */
const circle = (...arrows) => [
  `${new Set(arrows.map((arrow) => arrow.split(' ')[0])).size} files import each other in a circle:`,
  ...arrows.map((arrow) => `  ${arrow}`),
];

for (const [what, changes] of [
  ['a tree in order', {}],
  ['a file as long as one may be', { 'lib/engine/wait.js': LONGEST }],
  ['an arrow that a comment names', { 'lib/engine/other.js': '', 'src/agents/mod.rs': '// crate::engine::Queue\n' }],
  [
    'an arrow of the tests in a file',
    { 'src/agents/mod.rs': '#[cfg(test)]\nmod tests {\n    use crate::engine::Queue;\n}\n' },
  ],
]) {
  test(`${what} is right`, () => assert.deepEqual(complaints(changes), []));
}

for (const [what, changes, expected] of [
  [
    'a circle of two JS files',
    { 'lib/engine/wait.js': "require('./thread.js');\n", 'lib/engine/thread.js': "require('./wait.js');\n" },
    circle('lib/engine/thread.js -> lib/engine/wait.js', 'lib/engine/wait.js -> lib/engine/thread.js'),
  ],
  [
    'a circle of two Rust files, through a module that is used by its name',
    {
      'tests/model/src/lib.rs': 'mod word;\nmod engine;\n',
      'tests/model/src/word.rs': 'use crate::{engine};\nfn go() { engine::step::step() }\n',
      'tests/model/src/engine/mod.rs': 'pub mod step;\n',
      'tests/model/src/engine/step.rs': 'use crate::word;\n',
    },
    circle(
      'tests/model/src/engine/step.rs -> tests/model/src/word.rs',
      'tests/model/src/word.rs -> tests/model/src/engine/step.rs',
    ),
  ],
  [
    'a circle of three Rust files, through a re-export and a path in the code',
    {
      'src/engine/mod.rs': 'mod list;\nmod queue;\nmod table;\npub use queue::Queue;\n',
      'src/engine/queue.rs': 'use super::list::List;\n',
      'src/engine/list.rs': 'fn list() {\n    super::table::table();\n}\n',
      'src/engine/table.rs': 'use crate::engine::{self, Queue};\n',
    },
    // `self` in braces is `engine`: its `mod.rs`, which imports one of them.
    circle(
      'src/engine/list.rs -> src/engine/table.rs',
      'src/engine/mod.rs -> src/engine/queue.rs',
      'src/engine/queue.rs -> src/engine/list.rs',
      'src/engine/table.rs -> src/engine/mod.rs',
      'src/engine/table.rs -> src/engine/queue.rs',
    ),
  ],
  [
    'a circle in the model',
    { 'tests/model/src/word.rs': 'use crate::bits;\n', 'tests/model/src/bits.rs': 'use crate::word::FREE;\n' },
    circle('tests/model/src/bits.rs -> tests/model/src/word.rs', 'tests/model/src/word.rs -> tests/model/src/bits.rs'),
  ],
  [
    'a JS room that imports one above it',
    { 'lib/engine/wait.js': "require('../named/manager.js');\n", 'lib/named/manager.js': '' },
    ['lib/engine/wait.js imports lib/named/manager.js, which is not below it'],
  ],
  [
    'a room that imports one beside it',
    { 'lib/named/manager.js': "require('../primitives/mutex.js');\n" },
    ['lib/named/manager.js imports lib/primitives/mutex.js, which is not below it'],
  ],
  [
    'a Rust room that imports one above it',
    { 'src/agents/mod.rs': 'use crate::node;\npub struct Agent;\n', 'src/node/mod.rs': '' },
    ['src/agents/mod.rs imports src/node/mod.rs, which is not below it'],
  ],
  [
    'an engine that names a primitive',
    { 'src/engine/queue.rs': 'fn of() -> Latch {}\n' },
    ['src/engine/queue.rs names a primitive: Latch'],
  ],
  [
    'an engine that asks which primitive it is',
    { 'lib/engine/wait.js': "if (kind === 'latch') stay();\n" },
    ["lib/engine/wait.js names a primitive: 'latch'"],
  ],
  [
    'many comments without a head',
    { 'tests/words.rs': '/// Who waits.\n'.repeat(41) },
    ['41 comments without a head in all, and there may be 40 (MOST_HEADLESS in scripts/house.js)'],
  ],
  [
    'some comments without a head in the product',
    { 'lib/engine/wait.js': ' * Nobody waits.\n' },
    ['1 comments without a head, and there may be 0 (AT_MOST in scripts/house.js)'],
  ],
  [
    'a file that is too long',
    { 'tests/model/src/word.rs': `${LONGEST}\n` },
    ['tests/model/src/word.rs has 401 lines, more than 400'],
  ],
]) {
  test(`${what} is found`, () => {
    assert.deepEqual(complaints(changes), expected);
  });
}
