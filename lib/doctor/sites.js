// Call sites: where a user's code called this package. A stack costs microseconds, so it is taken once for each thing that is
// told of, and known by a number afterwards.

const path = require('node:path');
const { binding } = require('../engine/thread.js');

/** The package's own files, which no report names. */
const LIB = path.join(__dirname, '..', path.sep);
const INDEX = path.join(__dirname, '..', '..', 'index.js');
const MOST_FRAMES = 64;
/** So many frames of the user are kept. */
const MOST_KEPT = 16;
/** No more call sites are told apart. */
const MOST_SITES = 20_000;

/** The functions that run under a tracked hold have this name and a serial: V8 shows by it who awaits whom. */
const MARK = 'sablock hold ';
/** Promises that may be settled by more than one of those that they were made of. */
const SEVERAL = /^async Promise\./;

/** What `read` makes of the frames of the caller's stack, with the async functions that await it. */
function withFrames(read) {
  const { prepareStackTrace, stackTraceLimit } = Error;
  try {
    Error.stackTraceLimit = MOST_FRAMES;
    Error.prepareStackTrace = (_, frames) => frames;
    const holder = {};
    Error.captureStackTrace(holder, withFrames);
    const frames = holder.stack;
    return Array.isArray(frames) ? read(frames) : read([]);
  } finally {
    Error.prepareStackTrace = prepareStackTrace;
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function isOfUser(frame) {
  const file = frame.getFileName?.();
  if (typeof file !== 'string' || file.startsWith('node:') || file.startsWith('ext:')) return false;
  return !file.startsWith(LIB) && file !== INDEX;
}

/** Where in its file. Bun and Deno only know lines and columns. */
const positionIn = (frame) => frame.getPosition?.() ?? `${frame.getLineNumber()}:${frame.getColumnNumber()}`;

const ASYNC = /^async /;

function describe(frame) {
  const text = frame.toString().replace(ASYNC, '');
  return text.endsWith(')') ? text : `<anonymous> (${text})`;
}

const functionOf = (frame) => `${frame.getFunctionName() ?? ''} ${frame.getFileName()}`;

/** The call sites of this thread, by their numbers in the process. */
class Sites {
  #ids = new Map();
  /** The function that called, by the number of the site. */
  #functions = new Map();

  /** The number of the place from which the package was called; 0 if it is not known. */
  capture() {
    return withFrames((all) => {
      const frames = all.filter(isOfUser).slice(0, MOST_KEPT);
      if (frames.length === 0) return 0;
      // Lines and columns take V8 longer to find than the rest takes together.
      const key = frames.map((frame) => `${frame.getFileName()}:${positionIn(frame)}`).join();
      const known = this.#ids.get(key);
      if (known !== undefined) return known;
      if (this.#ids.size >= MOST_SITES) return 0;
      const id = binding.doctorSite(frames.map(describe));
      this.#ids.set(key, id);
      this.#functions.set(id, functionOf(frames[0]));
      return id;
    });
  }

  /** The function that called at a site, as `awaitingCode` names it; undefined if it is not known. */
  functionAt(site) {
    return this.#functions.get(site);
  }
}

/**
 * What awaits the code that runs, and waits for nothing else: the serials of the holds whose functions do, innermost first, and all
 * of the user's functions.
 */
function awaitingCode() {
  return withFrames((frames) => {
    const holds = [];
    const functions = [];
    for (const frame of frames) {
      const name = frame.getFunctionName?.() ?? '';
      if (name.startsWith(MARK)) holds.push(Number(name.slice(MARK.length)));
      else if (isOfUser(frame)) functions.push(functionOf(frame));
      else if (SEVERAL.test(frame.toString())) break;
    }
    return { holds, functions };
  });
}

exports.Sites = Sites;
exports.MARK = MARK;
exports.awaitingCode = awaitingCode;
