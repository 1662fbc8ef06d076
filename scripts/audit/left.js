// The remains of the package's JavaScript, for the audit: entries of its maps and sets, timers that were not cleared, listeners on
// signals that have not aborted. Watches what is made from now on by files of `lib`, and knows by which line.

const { AbortSignal } = globalThis;
const fs = require('node:fs');
const timers = require('node:timers');
const { collector } = require('../../__test__/helpers/collect.js');

const OURS = /([^\s(]*[\\/]lib[\\/]((?:[\w-]+[\\/])?[\w-]+\.js)):(\d+)/;

/** The entries that stay by design, by where they are made, and why. */
const STAYS = new Map([
  ['named/machine.js: backends', 'directories that were opened'],
  ['engine/register.js: entries', 'slots, until what they are of is collected'],
  ['engine/abandonment.js: timer', 'the warnings that were left out, for a second'],
  ['engine/lock-worker.js: given', 'warnings, each of which is given once'],
  ['doctor/sites.js: OWN', "the doctor's own folders"],
  ['named/several.js: locks', 'what a test has aborted is kept by its runner'],
]);

const sources = new Map();

/** The line of a file. */
function lineOf(file, number) {
  if (!sources.has(file)) sources.set(file, fs.readFileSync(file, 'utf8').split('\n'));
  return sources.get(file)[number - 1];
}

/**
 * Returns where in `lib` this call comes from, at most so many calls above: the file, and what the line gives a value to; null if
 * from nowhere.
 */
function placeBehind(calls) {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = calls;
  const { stack } = new Error();
  Error.stackTraceLimit = stackTraceLimit;
  const [, path, file, number] = OURS.exec(stack) ?? [];
  // Packages of others have such folders, too.
  if (path === undefined || path.includes('node_modules')) return null;
  const [, name = `line ${number}`] = /([\w.]+) (?:\?\?)?= /.exec(lineOf(path, number)) ?? [];
  return `${file.replaceAll('\\', '/')}: ${name}`;
}

/** `{ what, place, size() }` of what was made and is not gone; `size()` is how much is left in it, below 0 once it is gone. */
let made = [];
let most = 1000;
function note(what, calls, size) {
  const place = placeBehind(calls);
  if (place === null || STAYS.has(place)) return;
  made.push({ what, place, size });
  if (made.length < most) return;
  made = made.filter((each) => each.size() >= 0);
  most = Math.max(1000, 2 * made.length);
}

for (const Native of [Map, Set]) {
  const { name } = Native;
  const Watched = class extends Native {
    constructor(...args) {
      super(...args);
      const reference = new WeakRef(this);
      // One that begins with what it has is a constant.
      if (args.length === 0) note(`the entries of a ${name}`, 4, () => reference.deref()?.size ?? -1);
    }
  };
  Object.defineProperty(Watched, Symbol.species, { value: Native });
  globalThis[name] = Object.defineProperty(Watched, 'name', { value: name });
}

for (const start of ['setTimeout', 'setInterval']) {
  const original = timers[start];
  timers[start] = (...args) => {
    const handle = original(...args);
    const reference = new WeakRef(handle);
    note('timers', 4, () => ((reference.deref()?._destroyed ?? true) ? -1 : 1));
    return handle;
  };
}

const { addEventListener, removeEventListener } = EventTarget.prototype;
/** By signal: the listeners that are on it. */
const listening = new WeakMap();
AbortSignal.prototype.addEventListener = function (type, listener, options) {
  const all = listening.get(this) ?? new Set();
  listening.set(this, all.add(listener));
  // The program may keep its signal.
  note('listeners on signals', 12, () => (this.aborted || !all.has(listener) ? -1 : 1));
  return addEventListener.call(this, type, listener, options);
};
AbortSignal.prototype.removeEventListener = function (type, listener, options) {
  listening.get(this)?.delete(listener);
  return removeEventListener.call(this, type, listener, options);
};

/** Returns what is left, a line for each file and kind. */
exports.left = () => {
  collector()();
  const counts = {};
  for (const { what, place, size } of made) {
    const line = `${what}, made at lib/${place}`;
    counts[line] = (counts[line] ?? 0) + Math.max(size(), 0);
  }
  const left = Object.entries(counts).filter(([, count]) => count > 0);
  return left.map(([line, count]) => `${count} of ${line}`);
};
