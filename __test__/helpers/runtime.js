// The needs of a test beside Node's own ways, and the runtimes that lack them for reasons of their own.
// `scripts/runtimes.js` prints the reasons, and the README repeats them.

const { markAsUncloneable } = require('node:worker_threads');

const LACKS = {
  node: {
    ...(markAsUncloneable === undefined && {
      uncloneable: 'node:worker_threads has no markAsUncloneable() before 22.10',
    }),
    // Set by `npm run test:long-slices`.
    ...(process.env.SABLOCK_LONG_SLICES && {
      'termination when busy': 'nothing ends a blocked thread within its time',
      'short slices': 'a blocked thread runs no JS within its time',
    }),
    // Set by `npm run test:audit`.
    ...(process.env.SABLOCK_AUDIT && { 'complete collection': 'what was made is known until it is looked at' }),
  },
  bun: {
    inspector: 'node:inspector does not reach the workers',
    'async hooks': 'node:async_hooks calls no hook',
    'async stacks': 'a stack does not show the async functions that await what a promise reaction rejects',
    'async frames': 'the frames of a stack do not show the async functions that await them',
    'resource limits': 'the resourceLimits of a worker are not kept: it takes all the memory that there is',
    'waiters counted': 'nothing tells how many wait in Atomics.wait',
    'uncaught subscribers': 'what a subscriber throws fails the test that runs, whoever listens for uncaught errors',
    'stack ends':
      'a call near the end of the stack does not fail at each place where one of Node.js does, or takes minutes',
    "V8's flags": 'its engine is not V8',
    preloading: '--require does not reach workers, nor a file by its name in a package',
    'complete collection': 'what is unreachable may stay uncollected, and node:vm has no gc()',
    'code after the end': 'a worker runs no microtask after an uncaught error',
    'interruptions at calls':
      'a vm timeout also comes between two statements, before a promise is with who called for it',
    'broken packages': 'a package without its main file is reported as one that is not installed',
  },
  deno: {
    inspector: 'node:inspector does not reach the workers',
    'async hooks': 'node:async_hooks calls no hook',
    uncloneable: 'markAsUncloneable() of node:worker_threads does nothing',
    'prompt ends': "terminate() settles, and 'exit' comes, before the thread has ended",
    'resource limits': 'a worker that runs out of memory in an event hangs, and nobody learns of it',
    'mocked timers': 'the timers of node:test cannot take the place of its own',
    "V8's flags": 'it has them in the place of one option of its own',
    preloading: '--require is for files that Node.js would load, and does not reach workers',
    'no addons': '--no-addons is no option of it',
    'code after the end': 'a worker runs no microtask after an uncaught error',
    'failing writes': 'a write beyond the size that a file may have ends the process (SIGXFSZ)',
    'ends in subscribers': 'a thread that ends in a subscriber, which native code calls, ends the process (SIGTRAP)',
    'termination when busy': 'terminate() does not stop a thread that is blocked or busy',
  },
};
const NEEDS = ['short slices', ...Object.values(LACKS).flatMap(Object.keys)];

const name = process.versions.bun ? 'bun' : process.versions.deno ? 'deno' : 'node';

/** The options of a test: it is skipped where the runtime lacks what it needs. */
exports.needs = (...what) => {
  const unknown = what.find((need) => !NEEDS.includes(need));
  if (unknown !== undefined) throw new Error(`No test needs ${unknown}`);
  const reasons = what.map((need) => LACKS[name][need]).filter((reason) => reason !== undefined);
  return { skip: reasons.join('; ') || false };
};

exports.LACKS = LACKS;
