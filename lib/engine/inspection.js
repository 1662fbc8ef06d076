// The views for people: `inspect()`, `inspectAll()` and `console.log()` of a lock.

const { inspect } = require('node:util');
const { binding } = require('./thread.js');
const { namesByAddress } = require('./names.js');
const { describe: describeWord, threadEnding } = require('../errors.js');

/** The modes of names, by the binding's `NameMode`. */
const MODES = ['exclusive', 'shared'];

function describe(className, name, fields, depth, options) {
  const title = name === null ? className : `${className} ${inspect(name)}`;
  if (depth < 0) return options.stylize(`[${title}]`, 'special');
  return `${title} ${inspect(fields, { ...options, depth, compact: true, breakLength: Infinity })}`;
}

/** The result of the binding, which is nothing in a thread that is ending, where Node.js lets nobody make objects. */
function checkSeen(seen, what) {
  if (seen === undefined) throw threadEnding(what, 'inspect');
  return seen;
}

/** The result of `inspect()` of a primitive; `seen` is that of the binding. */
exports.inspectWord = (word, seen) => ({ name: word.name ?? null, ...checkSeen(seen, describeWord(word)) });

/** Every primitive of the process with waiters; the names are those of this thread. */
exports.inspectAll = () => {
  const names = namesByAddress();
  const inMemory = checkSeen(binding.inspectAll(), 'the locks').map(({ address, kind, byteOffset, inspection }) => ({
    name: names.get(kind, address) ?? null,
    kind,
    byteOffset,
    ...inspection,
  }));
  const withNames = checkSeen(binding.queuedNames(), 'the locks').map(({ name, holders, waiters }) => ({
    name,
    kind: 'HeldLock',
    byteOffset: -1,
    holders: holders.map(({ threadId, mode }) => ({ threadId, mode: MODES[mode], count: 1 })),
    waiters,
  }));
  return [...inMemory, ...withNames];
};

/** The text of `console.log()` for an object: its class, its name if it has one, and these fields. */
exports.show = describe;

/** The same of what has a word: `pick` makes fields of what the binding saw. */
exports.showWord = (className, word, seen, pick, depth, options) => {
  // As in `checkSeen`; but who prints an object is not to be surprised.
  const fields = { byteOffset: word.byteOffset, ...(seen === undefined ? {} : pick(seen)) };
  return describe(className, word.name ?? null, fields, depth, options);
};
