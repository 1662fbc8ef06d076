// The surroundings, other things that live in a process: each changes something before the package loads, or after it, or loads
// the package in another way.

const fs = require('node:fs');
const { createRequire } = require('node:module');
const os = require('node:os');
const path = require('node:path');
const vm = require('node:vm');

/** Everything of time that a fake clock takes the place of: nothing ever comes of a call. */
function freezeTime() {
  const never = () => ({ unref() {}, ref() {}, hasRef: () => false });
  for (const name of [
    'setTimeout',
    'setInterval',
    'setImmediate',
    'queueMicrotask',
    'clearTimeout',
    'clearInterval',
    'clearImmediate',
  ]) {
    globalThis[name] = never;
    if (name in require('node:timers')) require('node:timers')[name] = never;
  }
  performance.now = () => 0;
  process.hrtime = () => [0, 0];
  process.nextTick = () => {};
  Date.now = () => 0;
}

/** Timers as in a browser: handles are numbers, and there is no `setImmediate`. */
function useBrowserTimers() {
  const { setTimeout, setInterval } = globalThis;
  globalThis.setTimeout = (...args) => Number(setTimeout(...args)[Symbol.toPrimitive]());
  globalThis.setInterval = (...args) => Number(setInterval(...args)[Symbol.toPrimitive]());
  delete globalThis.setImmediate;
  delete globalThis.clearImmediate;
}

/** The fake clock of the runner that comes with Node.js: time stands still. */
function mockTimers() {
  const { mock } = require('node:test');
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'setImmediate', 'Date'] });
}

/** A second copy of the package, as a dependency of a dependency has one, beside the first. */
function loadCopy(file) {
  const root = path.dirname(file);
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-copy-'));
  process.on('exit', () => fs.rmSync(home, { recursive: true, force: true }));
  const isShipped = (name) => /^(lib|index\.js|package\.json|.*\.node)$/.test(name);
  for (const name of fs.readdirSync(root).filter(isShipped)) {
    fs.cpSync(path.join(root, name), path.join(home, name), { recursive: true });
  }
  return require(path.join(home, 'index.js'));
}

function freezePrototypes() {
  for (const type of [
    Object,
    Function,
    Array,
    Error,
    TypeError,
    RangeError,
    Promise,
    Map,
    Set,
    WeakMap,
    Int32Array,
    SharedArrayBuffer,
  ]) {
    Object.freeze(type.prototype);
  }
}

/** A signal of a library of old: it has no reason. */
class OldSignal extends EventTarget {
  aborted = false;
}
class OldController {
  signal = new OldSignal();
  abort() {
    this.signal.aborted = true;
    this.signal.dispatchEvent(new Event('abort'));
  }
}

/** Loads the package in a context of its own, whose globals `prepare` gets, as test runners do. */
const inContext =
  (prepare = () => {}) =>
  (file) => {
    const context = vm.createContext({});
    const globals = vm.runInContext('globalThis', context);
    for (const name of Object.getOwnPropertyNames(globalThis)) {
      if (!(name in globals)) globals[name] = globalThis[name];
    }
    prepare(globals, context);
    const modules = new Map();
    const load = (name) => {
      if (name.endsWith('.node')) return require(name);
      if (!modules.has(name)) {
        const module = { exports: {} };
        modules.set(name, module);
        const { resolve } = createRequire(name);
        const requireInside = Object.assign((id) => (path.isAbsolute(resolve(id)) ? load(resolve(id)) : require(id)), {
          resolve,
        });
        const names = ['module', 'exports', 'require', '__filename', '__dirname'];
        const run = vm.compileFunction(fs.readFileSync(name, 'utf8'), names, {
          filename: name,
          parsingContext: context,
        });
        run.call(module.exports, module, module.exports, requireInside, name, path.dirname(name));
      }
      return modules.get(name).exports;
    };
    return load(file);
  };

const polyfill = (_globals, context) =>
  vm.runInContext("if (!Object.isFrozen(Symbol)) try { Symbol.dispose = Symbol('a polyfill'); } catch {}", context);

exports.inContext = inContext;
exports.SURROUNDINGS = {
  nothing: {},
  'a fake clock, after loading': { after: freezeTime },
  'the fake clock of node:test, after loading': { after: mockTimers },
  'a second copy of the package': { before: () => require('../..').locks.request('first', () => {}), load: loadCopy },
  'timers as in a browser, before loading': { before: useBrowserTimers },
  'timers as in a browser, after loading': { after: useBrowserTimers },
  'frozen prototypes, before loading': { before: freezePrototypes },
  'frozen prototypes, after loading': { after: freezePrototypes },
  'signals without a reason': { newSignal: () => new OldController(), differs: /: aborted: / },
  'another realm': { load: inContext() },
  'another realm, with a polyfilled Symbol.dispose': { load: inContext(polyfill) },
  'another realm, beside a first load': {
    before: () => require('../..').locks.request('first', () => {}),
    load: inContext(),
  },
  'another realm, with timers as in a browser': {
    load: inContext((globals) => {
      globals.setTimeout = () => 1;
      delete globals.setImmediate;
    }),
  },
  '--jitless': { flags: ['--jitless'] },
  '--frozen-intrinsics': { flags: ['--frozen-intrinsics'] },
  '--disallow-code-generation-from-strings': { flags: ['--disallow-code-generation-from-strings'] },
  '--require sablock/doctor': { flags: ['--require', path.join(__dirname, '..', '..', 'lib', 'doctor', 'index.js')] },
};
