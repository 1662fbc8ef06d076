// What people look at: `inspect()`, `inspectAll()` and `console.log()` of a lock.

const { inspect } = require('node:util');
const { binding } = require('./thread.js');
const { namesByAddress } = require('./names.js');
const { describe: describeWord, threadEnding } = require('../errors.js');

/** How a name is held, by the binding's `NameMode`. */
const MODES = ['exclusive', 'shared'];

function describe(className, name, fields, depth, options) {
  const title = name === null ? className : `${className} ${inspect(name)}`;
  if (depth < 0) return options.stylize(`[${title}]`, 'special');
  return `${title} ${inspect(fields, { ...options, depth, compact: true, breakLength: Infinity })}`;
}

/** What the binding returned: nothing in a thread that is ending, where Node.js lets nobody make objects. */
function checkSeen(seen, what) {
  if (seen === undefined) throw threadEnding(what, 'inspect');
  return seen;
}

/** What `mutex.inspect()` returns. */
exports.inspectMutex = (word) => ({
  name: word.name ?? null,
  ...checkSeen(binding.inspect(word), describeWord(word)),
});

/** What `inspect()` of any other primitive returns. */
exports.inspectPrimitive = (words, ask) => ({
  name: words.name ?? null,
  ...checkSeen(binding.inspectPrimitive(words, ask), describeWord(words)),
});

/** What `condition.inspect()` returns. */
exports.inspectCondition = (word) => ({
  name: word.name ?? null,
  ...checkSeen(binding.inspectCondition(word), describeWord(word)),
});

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

exports.showMutex = (word, depth, options) => {
  const { byteOffset } = word;
  const seen = binding.inspect(word);
  // As in `checkSeen`; but who prints an object is not to be surprised.
  if (seen === undefined) return describe('Mutex', word.name ?? null, { byteOffset }, depth, options);
  const { locked, ownerThreadId, abandoned, waiters } = seen;
  const fields = { byteOffset, locked, ownerThreadId, abandoned, waiters: waiters.length };
  return describe('Mutex', word.name ?? null, fields, depth, options);
};

exports.showPrimitive = (className, words, ask, depth, options) => {
  const { byteOffset } = words;
  const seen = binding.inspectPrimitive(words, ask);
  const fields =
    seen === undefined ? { byteOffset } : { byteOffset, holders: seen.holders.length, waiters: seen.waiters.length };
  return describe(className, words.name ?? null, fields, depth, options);
};

exports.showCondition = (word, depth, options) => {
  const fields = { byteOffset: word.byteOffset, waiters: binding.waiting(word, 0) };
  return describe('Condition', word.name ?? null, fields, depth, options);
};

exports.showTable = ({ name, byteOffset, length }, depth, options) =>
  describe('LockTable', name, { byteOffset, length }, depth, options);

exports.showGuard = ({ mutex, locked, abandoned }, depth, options) =>
  describe('LockGuard', null, { locked, abandoned, mutex }, depth, options);

exports.showRwLockGuard = ({ mode, locked, abandoned }, rwlock, depth, options) =>
  describe('RwLockGuard', null, { mode, locked, abandoned, rwlock }, depth, options);
