// Checks what the folder list promises: no circle of files in `src`, `lib` and the models, rooms that import one way only, engines
// that name no primitive, no file of the product that is too long, no room that grows unsaid, and no more of what is to become
// less. The arrows are those of the sources: `require` in JS; in Rust each path that begins with
// `crate`, `super`, `self` or a child module, followed through re-exports to the file of the name. Tests inside files do not count.
// `node scripts/house.js ROOT` checks another tree.

const fs = require('node:fs');
const path = require('node:path');

const LONGEST = 400;

/** The faults that still stand, by the first file; nothing is to come here. */
const STANDING = {
  circles: [],
  imports: [],
  long: [],
  // The desk that this load started, which no call leaves half-made.
  state: ['lib/engine/lock-worker.js'],
};

/** The rooms that each room may import from, beside itself. */
const BELOW = {
  'src/node': ['doctor', 'clients', 'primitives', 'engine', 'agents', 'files', 'desk'],
  'src/doctor': ['clients', 'engine', 'agents'],
  'src/clients': ['primitives', 'engine', 'agents', 'files', 'desk'],
  'src/primitives': ['engine', 'agents'],
  'src/engine': ['agents'],
  'src/agents': [],
  'src/desk': ['agents'],
  'src/files': [],
  'lib/cli': ['doctor', 'named', 'primitives', 'stores', 'engine', 'load'],
  'lib/doctor': ['named', 'primitives', 'stores', 'engine', 'load'],
  'lib/primitives': ['engine', 'load'],
  'lib/named': ['stores', 'engine', 'load'],
  'lib/stores': ['engine', 'load'],
  'lib/engine': ['load'],
  'lib/load': [],
};

/** Lines of each room, without unit tests. The commit by which a room grows raises its bound, and says why. */
const LINES = {
  src: 563,
  'src/agents': 315,
  'src/clients': 2078,
  'src/desk': 356,
  'src/doctor': 2769,
  'src/engine': 5758,
  'src/files': 3344,
  'src/node': 4016,
  'src/primitives': 1516,
  'src/sync': 394,
  lib: 771,
  'lib/cli': 705,
  'lib/doctor': 2632,
  'lib/engine': 1709,
  'lib/load': 271,
  'lib/named': 2256,
  'lib/primitives': 3478,
  'lib/stores': 4312,
};

/** A comment that begins with neither a noun nor a verb. */
const HEADLESS = /^\s*(?:\/\/[/!]?|\/?\*\*?)\s*(?:What|Of|Whom|Who|How|Where|Those|Nobody|Whoever|So)\b/gm;

/**
 * The patterns that are to become less in `src` and `lib`, outside of a room, and how often they may be there. Bounds are only
 * lowered.
 */
const AT_MOST = [
  { what: 'constants named SLICE', outside: 'src/sync/', pattern: /^(?:pub(?:\([^)]*\))? )?const SLICE\b/gm, most: 0 },
  { what: 'inboxes', outside: 'src/agents/', pattern: /\bstruct \w*Inbox\b|\binbox: \w*(?:Mutex|Arc)\b/g, most: 0 },
  { what: 'statuses', outside: 'src/node/status.rs', pattern: /^pub const [A-Z_]+: i32 = /gm, most: 0 },
  {
    what: 'functions of the binding',
    pattern: /^ *#\[napi\b(?:[^\]]|\[\])*\]\n(?: *#\[.*\]\n)* *pub (?:async )?fn /gm,
    most: 99,
  },
  // Their errors take the place of a termination: the thread runs on (Node.js 26).
  { what: 'functions of JS that napi calls', pattern: /\b(?:Function|FunctionRef|ThreadsafeFunction)</g, most: 0 },
  { what: 'condvars', outside: 'src/sync/', pattern: /: Condvar = |Condvar::new\(\)[^;]*\}$/gm, most: 1 },
  {
    what: 'implementations of the engine',
    outside: 'src/engine/',
    pattern: /^impl(?:<[^>]*>)? (?:Engine|EventLoop)\b/gm,
    most: 0,
  },
  { what: 'comments without a head', pattern: HEADLESS, most: 0 },
];

/** The further trees whose comments count, and how many of all may have no head. */
const OTHERS = ['__test__', 'bench', 'examples', 'scripts', 'tests', 'types'];
const MOST_HEADLESS = 40;

const root = process.argv[2] ?? path.join(__dirname, '..');
const files = {};
for (const [folder, extension] of [
  ['src', '.rs'],
  ['tests/model/src', '.rs'],
  ['lib', '.js'],
]) {
  for (const name of fs.readdirSync(path.join(root, folder), { recursive: true })) {
    if (!name.endsWith(extension)) continue;
    const file = path.posix.join(folder, name.replaceAll(path.sep, '/'));
    files[file] = fs.readFileSync(path.join(root, file), 'utf8');
  }
}

/** The names of the primitives: of their classes, but for one that is the base of others. */
const NAMES = Object.entries(files)
  .filter(([file]) => file.startsWith('lib/primitives/'))
  .flatMap(([, text]) => [...text.matchAll(/^class (\w+) extends (?:SharedPrimitive|ExclusiveLock|ResetEvent)\b/gm)])
  .map(([, name]) => name);

/**
 * The names of primitives that an engine may not use. In Rust `Mutex` is that of `sync`, and `Once` a limit of waits. In JS parts
 * of names count, and words in quotes, as in `kind === 'once'`.
 */
const PRIMITIVES = {
  '.rs': new RegExp(`\\b(?:${NAMES.filter((name) => name !== 'Mutex' && name !== 'Once').join('|')})\\b`, 'g'),
  '.js': new RegExp(
    `\\w*(?:${NAMES.filter((name) => name !== 'Once').join('|')})\\w*|\\bOnce\\b|'(?:${NAMES.join('|').toLowerCase()}|event)'`,
    'g',
  ),
};

function* arrowsOfJs(file) {
  for (const [, name] of files[file].matchAll(/require\('(\.[^']+)'\)/g)) {
    const target = path.posix.join(path.posix.dirname(file), name);
    if (target in files) yield target;
  }
}

/** The unit tests in a Rust file. */
const UNIT_TESTS = /^( *)#\[cfg\((?:all\()?test\b.*\]\n(?: *#.*\n)* *mod \w+ \{\n[\s\S]*?^\1\}\n?/gm;

/** The code of a Rust file, without comments, strings, and the tests in it. In a block `mod x { }` `super` is the file itself. */
function codeOf(file) {
  return files[file]
    .replace(/\/\/.*|"(?:[^"\\]|\\[\s\S])*"|pub\(in [^)]*\)/g, '')
    .replace(UNIT_TESTS, '')
    .replace(/^(?:pub(?:\([^)]*\))? )?mod \w+ \{\n[\s\S]*?^\}/gm, (block) => block.replaceAll('super::', 'self::'));
}

/** The file of a module, by its path from the crate's root. */
function moduleFile(base, segments) {
  const stem = [base, ...segments].join('/');
  const names = segments.length === 0 ? [`${stem}/lib.rs`, `${stem}/main.rs`] : [`${stem}.rs`, `${stem}/mod.rs`];
  return names.find((name) => name in files);
}

/** The modules that re-exported names come from, as paths from the crate's root. */
const reExports = new Map();

/** All paths of a `use`, with `{a, b::c}` written out. */
function* written(tree, prefix = []) {
  const open = tree.indexOf('{');
  if (open < 0) {
    const [used] = tree.trim().split(/\s+as\s+/);
    if (used !== '') yield [...prefix, ...used.split('::')];
    return;
  }
  const head = tree.slice(0, open).trim().replace(/::$/, '');
  const inner = tree.slice(open + 1, tree.lastIndexOf('}'));
  let [depth, part] = [0, ''];
  for (const character of `${inner},`) {
    if (character === ',' && depth === 0) {
      yield* written(part, [...prefix, ...head.split('::').filter(Boolean)]);
      part = '';
      continue;
    }
    depth += { '{': 1, '}': -1 }[character] ?? 0;
    part += character;
  }
}

function* pathsOf(file, isUse) {
  const code = codeOf(file);
  const base = file.startsWith('tests/model/') ? 'tests/model/src' : 'src';
  const segments = file
    .slice(base.length + 1)
    .replace(/(^|\/)(lib|main|mod)?\.rs$/, '')
    .replace(/\.rs$/, '')
    .split('/')
    .filter(Boolean);
  const absolute = ([first, ...rest]) => {
    if (first === 'crate') return rest;
    if (first === 'self') return [...segments, ...rest];
    if (first !== 'super') return moduleFile(base, [...segments, first]) && [...segments, first, ...rest];
    const ups = rest.findIndex((segment) => segment !== 'super') + 1;
    return [...segments.slice(0, -ups), ...rest.slice(ups - 1)];
  };
  const uses = code.matchAll(/^ *(pub(?:\([^)]*\))? )?use ([^;]+);/gm);
  /** The modules that it uses by their names. */
  const modules = new Map();
  for (const [, visible, tree] of uses) {
    for (const used of written(tree)) {
      const target = absolute(used.filter((segment, index) => segment !== 'self' || index === 0));
      if (target === undefined || target === '') continue;
      modules.set(target.at(-1), target);
      yield { base, segments, target, isReExport: visible !== undefined };
    }
  }
  if (isUse) return;
  const rest = code.replace(/^ *(pub(?:\([^)]*\))? )?use [^;]+;/gm, '');
  for (const [used] of rest.matchAll(/\b(?<!::)[a-z_]\w*(?:::\w+)+/g)) {
    const [first, ...others] = used.split('::');
    const target = modules.has(first) ? [...modules.get(first), ...others] : absolute([first, ...others]);
    if (target) yield { base, target };
  }
}

/** The file that a path leads to. */
function fileOf(base, target, depth = 0) {
  let segments = [];
  for (const segment of target) {
    const inner = moduleFile(base, [...segments, segment]);
    if (inner === undefined) {
      const origin = reExports.get([base, ...segments, segment].join('/'));
      if (origin !== undefined && depth < 9) return fileOf(base, origin, depth + 1);
      break;
    }
    segments = [...segments, segment];
  }
  return moduleFile(base, segments);
}

function* arrowsOfRust(file) {
  for (const { base, target } of pathsOf(file, false)) yield fileOf(base, target);
}

for (const file of Object.keys(files).filter((name) => name.endsWith('.rs'))) {
  for (const { base, segments, target, isReExport } of pathsOf(file, true)) {
    if (isReExport) reExports.set([base, ...segments, target.at(-1)].join('/'), target);
  }
}

const arrows = {};
for (const file of Object.keys(files)) {
  const found = new Set(file.endsWith('.rs') ? arrowsOfRust(file) : arrowsOfJs(file));
  found.delete(file);
  found.delete(undefined);
  arrows[file] = [...found].sort();
}

/** The circles: files that reach each other (Tarjan, 1972). */
function circles() {
  const [found, stack, numbers, lows] = [[], [], new Map(), new Map()];
  const visit = (file) => {
    numbers.set(file, numbers.size);
    lows.set(file, numbers.get(file));
    stack.push(file);
    for (const next of arrows[file]) {
      if (!numbers.has(next)) visit(next);
      if (stack.includes(next)) lows.set(file, Math.min(lows.get(file), lows.get(next)));
    }
    if (lows.get(file) !== numbers.get(file)) return;
    const circle = stack.splice(stack.indexOf(file));
    if (circle.length > 1) found.push(circle.sort());
  };
  for (const file of Object.keys(files)) if (!numbers.has(file)) visit(file);
  return found;
}

const roomOf = (file) => file.split('/').slice(0, 2).join('/');
const faults = [];

/** Notes a fault of a file, unless it is one that still stands. */
function note(kind, file, text) {
  if (!STANDING[kind].includes(file)) faults.push(text);
}

for (const circle of circles()) {
  const inside = (file) => arrows[file].filter((target) => circle.includes(target));
  const tied = circle.flatMap((file) => inside(file).map((target) => `  ${file} -> ${target}`));
  note('circles', circle[0], [`${circle.length} files import each other in a circle:`, ...tied].join('\n'));
}
for (const [file, targets] of Object.entries(arrows)) {
  const below = BELOW[roomOf(file)] ?? ['load'];
  const isAbove = (room) => room in BELOW && room !== roomOf(file) && !below.includes(path.posix.basename(room));
  for (const target of targets.filter((name) => isAbove(roomOf(name)) && file !== 'src/lib.rs')) {
    note('imports', file, `${file} imports ${target}, which is not below it`);
  }
}
for (const file of Object.keys(files).filter((name) => roomOf(name).endsWith('/engine'))) {
  const isRust = file.endsWith('.rs');
  const code = isRust ? codeOf(file) : files[file].replace(/\/\/.*|\/\*[\s\S]*?\*\//g, '');
  for (const [name] of code.matchAll(PRIMITIVES[isRust ? '.rs' : '.js']))
    faults.push(`${file} names a primitive: ${name}`);
}
// State between two calls is left behind by a call that is cut off: it belongs to an object, or to the thread.
for (const [file, text] of Object.entries(files).filter(([name]) => name.startsWith('lib/'))) {
  for (const [, name] of text.matchAll(/^(?:let|var) (\w+) =/gm))
    note('state', file, `${file} has state in its module: ${name}`);
}
// Time and turns are those of clock.js, which no test's fake clock stops.
const TIME =
  /(?<![\w.])(?:set(?:Timeout|Interval|Immediate)|clear(?:Timeout|Interval)|queueMicrotask|performance\.now|process\.nextTick)\b(?=\()/;
for (const [file, text] of Object.entries(files)) {
  if (!file.startsWith('lib/') || file.startsWith('lib/cli/')) continue;
  const code = text.replace(/\/\/.*|\/\*[\s\S]*?\*\//g, '');
  const [name] = TIME.exec(code) ?? [];
  if (name !== undefined) faults.push(`${file} calls ${name}(), and not that of lib/load/clock.js`);
}
for (const [file, text] of Object.entries(files)) {
  const lines = text.split('\n').length - 1;
  if (lines > LONGEST) note('long', file, `${file} has ${lines} lines, more than ${LONGEST}`);
}

/** A file without its unit tests, which may be a file of their own. */
const withoutTests = (file) =>
  /(?:^|\/)(?:tests|testing)\.rs$|\/tests\/\w+\.rs$/.test(file) ? '' : files[file].replace(UNIT_TESTS, '');

const product = Object.keys(files).filter((file) => !file.startsWith('tests/model/'));
const lines = {};
for (const file of product) {
  const room = file.split('/').slice(0, -1).slice(0, 2).join('/');
  lines[room] = (lines[room] ?? 0) + withoutTests(file).split('\n').length - 1;
}
for (const [room, count] of Object.entries(lines)) {
  const most = LINES[room] ?? 0;
  if (count > most) faults.push(`${room} has ${count} lines, and may have ${most} (LINES in scripts/house.js)`);
}
for (const { what, outside, pattern, most } of AT_MOST) {
  const places = product.filter((file) => outside === undefined || !file.startsWith(outside));
  const count = places.reduce((sum, file) => sum + (files[file].match(pattern)?.length ?? 0), 0);
  const where = outside === undefined ? '' : ` outside of ${outside}`;
  if (count > most) faults.push(`${count} ${what}${where}, and there may be ${most} (AT_MOST in scripts/house.js)`);
}

const headlessIn = (text) => text.match(HEADLESS)?.length ?? 0;
let headless = Object.values(files).reduce((sum, text) => sum + headlessIn(text), 0);
for (const folder of OTHERS.map((name) => path.join(root, name)).filter((name) => fs.existsSync(name))) {
  for (const name of fs.readdirSync(folder, { recursive: true })) {
    if (!/\.(?:rs|m?js|[mc]?ts)$/.test(name) || name.includes('node_modules')) continue;
    headless += headlessIn(fs.readFileSync(path.join(folder, name), 'utf8'));
  }
}
if (headless > MOST_HEADLESS) {
  faults.push(
    `${headless} comments without a head in all, and there may be ${MOST_HEADLESS} (MOST_HEADLESS in scripts/house.js)`,
  );
}

if (faults.length > 0) {
  console.error(faults.join('\n'));
  process.exitCode = 1;
}
