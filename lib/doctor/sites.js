// Call sites: where a user's code called this package. A stack costs microseconds, so it is only captured when a hold begins; it is
// read when it is needed, and known by a number afterwards.

const fs = require('node:fs');
const { findSourceMap } = require('node:module');
const path = require('node:path');
const { fileURLToPath } = require('node:url');
const { binding } = require('../engine/thread.js');

/** The package's own files, which no report names: those in `lib` and the index, of each copy that is loaded. */
const OWN = new Set();
/** The file that a copy is known by: that of the thread, or the one that it is in when the package is packed. */
const OF_COPY = [path.join('lib', 'engine', 'thread.js'), path.join('lib', 'load', 'core.js')];
/** A test for each bundle that has a copy in it: whether a line is the package's. */
const BUNDLES = new Map();
/** Takes in a copy, by that file; another one is a bundle that has the copy in it. */
exports.addCopy = (file) => {
  const own = OF_COPY.find((name) => file.endsWith(path.sep + name));
  if (own !== undefined) {
    const root = file.slice(0, -own.length);
    OWN.add(path.join(root, 'lib', path.sep)).add(path.join(root, 'index.js'));
  } else if (!BUNDLES.has(file)) {
    BUNDLES.set(file, linesOfPackage(file));
    binding.doctorBundle(file);
  }
};

/** A line above each file's code, as bundlers write it unless they minify: esbuild a comment, webpack a key. A path is no sentence. */
const BEGINS = /^(?:\/\/ |\/\*\*\*\/ ")((?:(?![.,:;] )[^"])+\.\w+)(?:\?[^"]*)?"?:?$/;
const IS_OF_PACKAGE = /(?:^|\/)sablock\/(?:lib\/.+|index)\.js$/;

function linesOfPackage(file) {
  const lines = new Set();
  try {
    let isInside = false;
    for (const [index, line] of fs.readFileSync(file, 'utf8').split('\n').entries()) {
      const [, source] = BEGINS.exec(line.trimEnd()) ?? [];
      if (source !== undefined) isInside = IS_OF_PACKAGE.test(source);
      if (isInside) lines.add(index + 1);
    }
  } catch {
    // It may be no file.
  }
  return lines;
}
/** The frames of a hold, those of this package included. */
const HOLD_FRAMES = 8;
/** The frames of a wait. */
const WAIT_FRAMES = 21;
const MOST_FRAMES = 64;
/** The number of the user's frames that are kept. */
const MOST_KEPT = 12;
/** No more call sites are told apart. */
const MOST_SITES = 20_000;

const toFrames = (_, frames) => frames;

/** Runs `act` with a setting of stacks of this thread, which is the user's, changed. */
function withSetting(name, value, act) {
  const restore = swap(name, value);
  try {
    return act();
  } finally {
    restore();
  }
}

/** The frames of what was captured, unread. */
const framesOf = (holder) => withSetting('prepareStackTrace', toFrames, () => holder.stack);

/** Changes a setting; returns what changes it back. */
const swap = process.versions.bun === undefined ? swapProperty : swapValue;

/** Whatever was there, an accessor too: it is called neither to read nor to write. What is frozen stays: places are not known then. */
function swapProperty(name, value) {
  const before = Object.getOwnPropertyDescriptor(Error, name);
  if (!Reflect.defineProperty(Error, name, { value, configurable: true, enumerable: true, writable: true }))
    return () => {};
  return () => {
    if (before === undefined) delete Error[name];
    else Object.defineProperty(Error, name, before);
  };
}

/** Bun sees only what is assigned. */
function swapValue(name, value) {
  const before = Error[name];
  Error[name] = value;
  return () => {
    Error[name] = before;
  };
}

/** The frames below the function `below`, with the async functions that await them. */
const framesBelow = (below, limit) =>
  withSetting('stackTraceLimit', limit, () => {
    const holder = {};
    const frames = withSetting('prepareStackTrace', toFrames, () => {
      Error.captureStackTrace(holder, below);
      return holder.stack;
    });
    return Array.isArray(frames) ? frames : [];
  });

/** The frames of the caller's stack. */
exports.readStack = (limit = MOST_FRAMES) => framesBelow(exports.readStack, limit);

/** V8 formats a stack when it is first read; Bun at once. */
const isReadLater = (() => {
  const holder = {};
  Error.captureStackTrace(holder);
  return Array.isArray(framesOf(holder));
})();

const { captureStackTrace } = Error;

/** A capture that can be read later; null if that fails. V8 walks each call on its way, inlined or not: there are few. */
function capture(below) {
  try {
    if (!isReadLater) return { stack: framesBelow(below, HOLD_FRAMES) };
    const holder = {};
    const limit = Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit');
    if (limit?.writable !== true) {
      withSetting('stackTraceLimit', HOLD_FRAMES, () => captureStackTrace(holder, below));
      return holder;
    }
    // As `withSetting` does, but in a tenth of its time.
    Error.stackTraceLimit = HOLD_FRAMES;
    captureStackTrace(holder, below);
    Error.stackTraceLimit = limit.value;
    return holder;
  } catch {
    return null;
  }
}
const captureNothing = () => null;

/** The path that a file's URL names; other names as they are. */
function toPath(name) {
  try {
    return name.startsWith('file:') ? fileURLToPath(name) : name;
  } catch {
    // A URL of another machine, or of another system.
    return name;
  }
}
const INTERNAL = /^(?:node|ext|bun|internal):/;

/** Eval workers, `node -e` and `vm` name their code; code of `eval` and `new Function` has nothing but its origin. */
function isOfUser(frame) {
  const file = frame.getFileName?.() ?? undefined;
  if (file === undefined) return frame.isEval?.() === true && !isInPackage(frame.getEvalOrigin?.() ?? '');
  if (typeof file !== 'string' || INTERNAL.test(file) || isInPackage(file)) return false;
  return BUNDLES.size === 0 || !BUNDLES.get(toPath(file))?.has(frame.getLineNumber());
}

function isInPackage(text) {
  for (const own of OWN) if (text.includes(own)) return true;
  return false;
}

/** The position in its file. Bun and Deno only know lines and columns. */
const positionIn = (frame) => frame.getPosition?.() ?? `${frame.getLineNumber()}:${frame.getColumnNumber()}`;
const keyOf = (frame) => `${frame.getFileName() ?? frame.getEvalOrigin?.()}:${positionIn(frame)}`;

const AT = /^\s*at (?:async )?/;

/** The `Error` of the main context: Node.js formats the errors of other contexts, those of Jest for one, as it says. */
const MainError = (() => {
  try {
    path.basename(null);
  } catch (error) {
    let prototype = Object.getPrototypeOf(error);
    for (let next = prototype; Object.getPrototypeOf(next) !== null; next = Object.getPrototypeOf(next))
      prototype = next;
    return prototype.constructor;
  }
})();

/** As the program formats its own errors; null if it does not. */
function format(frames) {
  const { prepareStackTrace: prepare = MainError.prepareStackTrace } = Error;
  if (typeof prepare !== 'function') return null;
  try {
    const text = prepare(new Error(''), frames);
    const lines = typeof text === 'string' ? text.split('\n').filter((line) => AT.test(line)) : [];
    return lines.length === frames.length ? lines : null;
  } catch {
    return null;
  }
}

/** By the source map of its file, if Node.js knows one. */
function describe(frame) {
  const text = frame.toString();
  const file = frame.getFileName();
  const line = frame.getLineNumber();
  const entry = file && line ? findSourceMap?.(file)?.findEntry(line - 1, frame.getColumnNumber() - 1) : undefined;
  if (entry?.originalSource === undefined) return text;
  const source = toPath(entry.originalSource);
  const place = `${source}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
  const name = frame.getFunctionName();
  return name === null ? place : `${name} (${place})`;
}

/** Code of `eval` and `new Function` is where that was called. */
const EVAL = /\(eval at .*\(([^()]*:\d+:\d+)\), <anonymous>:[^(]*$/;

function toFrame(line) {
  const text = line.replace(AT, '').replace(EVAL, '($1)');
  return text.endsWith(')') ? text : `<anonymous> (${text})`;
}

/**
 * The line, with the name that V8 gives to the function where the file was transformed in its place, as Jest does it, whose formatter
 * names a function by what it calls.
 */
function named(line, frame) {
  const file = frame.getFileName();
  const at = file ? line.indexOf(file) : -1;
  const own = frame.toString();
  const ownAt = file ? own.indexOf(file) : -1;
  if (at < 0 || ownAt < 0) return line;
  return own.slice(0, ownAt) + line.slice(at).replace(/\)?$/, own.endsWith(')') ? ')' : '');
}

/** The call sites of this thread, by their numbers in the process. */
class Sites {
  #ids = new Map();
  #areKept;
  /** A capture, of which `read` makes the number; null if places are left out. Called with the function below which frames count. */
  capture;

  constructor(areKept) {
    this.#areKept = areKept;
    this.capture = areKept ? capture : captureNothing;
  }

  /** The number of what was captured; 0 if it is not known. */
  read(holder) {
    if (holder === null) return 0;
    const frames = isReadLater ? framesOf(holder) : holder.stack;
    return Array.isArray(frames) ? this.#numberOf(frames) : 0;
  }

  /** The number of the place from which the package was called. */
  here() {
    return this.#areKept ? this.#numberOf(exports.readStack(WAIT_FRAMES)) : 0;
  }

  /** As `here`, if code of the user runs now, and does not only await what runs; else 0. */
  calling() {
    if (!this.#areKept) return 0;
    const all = exports.readStack(WAIT_FRAMES);
    return all.some((frame) => frame.isAsync?.() !== true && isOfUser(frame)) ? this.#numberOf(all) : 0;
  }

  #numberOf(all) {
    const kept = Array.from(all.keys())
      .filter((index) => isOfUser(all[index]))
      .slice(0, MOST_KEPT);
    if (kept.length === 0) return 0;
    // Lines and columns take V8 longer to find than the rest takes together.
    const key = kept.map((index) => keyOf(all[index])).join();
    const known = this.#ids.get(key);
    if (known !== undefined) return known;
    if (this.#ids.size >= MOST_SITES) return 0;
    // All of them: formatters may look at the next frame too.
    const formatted = format(all);
    const lineOf = (index) => (formatted === null ? describe(all[index]) : named(formatted[index], all[index]));
    const id = binding.doctorSite(kept.map((index) => toFrame(lineOf(index))));
    this.#ids.set(key, id);
    return id;
  }
}

exports.Sites = Sites;
