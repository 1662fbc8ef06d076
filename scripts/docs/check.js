// npm run docs:check: runs every block of JavaScript and TypeScript in the documents and in index.d.ts, and checks the rest
// that a reader may rely on: members, links, names of npm scripts, error codes, paths, llms.txt.
// docs/development/documents.md says how blocks are marked.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { inspect } = require('node:util');
const {
  blocksOf,
  examplesOf,
  exportsOf,
  headingsOf,
  inlinesOf,
  listDocuments,
  parse,
  read,
  root,
} = require('./documents.js');
const { generate, listGuides, listReference } = require('./llms.js');
const { run } = require('./programs.js');
const { checkTypes } = require('./types.js');
const { install, RUNTIMES } = require('../runtimes.js');
const sablock = require('../..');

const REFERENCE = listReference();
const DOCTOR = 'types/entries/doctor.d.ts';
const INDEX = 'docs/llms.txt';
const ERRORS = 'docs/guides/errors.md';
const LOADS_SABLOCK = /(require\(|from )'sablock'/;
/** Other names of languages that the check runs, under which a block would not be run. */
const UNCHECKED = /^(javascript|mjs|cjs|jsx|tsx|typescript|bash|shell|console)\b/;
const CODE = /\b(?:ERR|SABLOCK)_[A-Z_]+\b/g;

const problems = [];
const report = (file, line, problem) => problems.push(`${file}:${line}: ${problem}`);

const documents = listDocuments().map((file) => {
  const tokens = parse(read(file));
  return { file, tokens, blocks: blocksOf(tokens) };
});

/** Returns the path of a Node.js of this version or a later one; undefined if there is none for this system. */
const toNode = (version) =>
  Number(process.versions.node.split('.')[0]) >= version
    ? process.execPath
    : install(RUNTIMES.find((runtime) => runtime.kind === 'node' && runtime.version >= version));

/**
 * Makes an argument of `run` from a `js` or `ts` block. `text` is the block after it, which may be its output; for a program in
 * TypeScript with the doctor, that of the same in JavaScript.
 */
const toProgram = (file, block, text) => {
  const { code, language, line, marker } = block;
  const isTyped = language === 'ts';
  if (isTyped && marker === 'types only') return { file, line, code, isTyped };
  const isFragment = REFERENCE.includes(file) ? !LOADS_SABLOCK.test(code) : marker === 'fragment';
  const version = /^Node\.js (\d+)$/.exec(marker ?? '');
  const needs = /^needs: (\w+(?:, \w+)*)$/.exec(marker ?? '');
  const isDoctored = marker === 'doctor';
  if (marker !== null && !isFragment && !isDoctored && version === null && needs === null)
    report(file, line, `unknown marker <!-- ${marker} -->`);
  const output = text?.language === 'text' ? text.code : null;
  const isToCome = needs?.[1].split(', ').some((name) => !(name in sablock)) ?? false;
  const node = version === null ? process.execPath : toNode(version[1]);
  return { file, line, code, isTyped, isFragment, isDoctored, output, node: isToCome ? undefined : node };
};

const programsOf = ({ file, blocks }) =>
  blocks.flatMap((block, index) => {
    if (UNCHECKED.test(block.language)) report(file, block.line, `write js, ts or sh, not ${block.language}`);
    if (block.language !== 'js' && block.language !== 'ts') return [];
    const isSame = block.language === 'ts' && block.marker === 'doctor';
    const text = isSame ? blocks.slice(0, index).findLast(({ language }) => language === 'text') : blocks[index + 1];
    return [toProgram(file, block, text)];
  });

const runAll = async (programs) => {
  const queue = programs.values();
  const work = async () => {
    for (const program of queue) {
      const problem = await run(program);
      if (problem !== null) report(program.file, program.line, `this code ${problem}`);
    }
  };
  await Promise.all(Array.from({ length: os.availableParallelism() }, work));
};

const checkCommands = (file, line, text, scripts) => {
  for (const [, name] of text.matchAll(/\bnpm run ([\w:-]+)/g)) {
    if (!(name in scripts)) report(file, line, `there is no npm run ${name}`);
  }
};

/** Checks the names after `npm run` in blocks of commands and in the text. */
const checkAllCommands = () => {
  const { scripts } = JSON.parse(read('package.json'));
  for (const { file, tokens, blocks } of documents) {
    for (const { line, language, code } of blocks) if (language === 'sh') checkCommands(file, line, code, scripts);
    for (const { child, line } of inlinesOf(tokens)) {
      if (child.type === 'code_inline') checkCommands(file, line, child.content, scripts);
    }
  }
};

const anchorsOf = (tokens, Slugger) => {
  const slugger = new Slugger();
  return new Set(headingsOf(tokens).map((heading) => slugger.slug(heading)));
};

const checkLink = (file, line, href, Slugger) => {
  if (/^[a-z]+:/.test(href)) return;
  const [target, anchor] = href.split('#');
  const absolute = target === '' ? path.join(root, file) : path.resolve(root, path.dirname(file), target);
  if (!fs.existsSync(absolute)) return report(file, line, `the link to ${href} leads nowhere`);
  if (anchor === undefined) return;
  const document = documents.find((other) => path.join(root, other.file) === absolute);
  if (!document || !anchorsOf(document.tokens, Slugger).has(anchor))
    report(file, line, `there is no heading for ${href}`);
};

const checkLinks = async () => {
  const { default: Slugger } = await import('github-slugger');
  let count = 0;
  for (const { file, tokens } of documents) {
    for (const { child, line } of inlinesOf(tokens)) {
      if (child.type !== 'link_open' && child.type !== 'image') continue;
      checkLink(file, line, child.attrGet('href') ?? child.attrGet('src'), Slugger);
      count++;
    }
  }
  return count;
};

const sources = (folder) =>
  fs
    .readdirSync(path.join(root, folder), { recursive: true })
    .filter((name) => /\.(js|rs)$/.test(name))
    .map((name) => read(path.join(folder, name)))
    .join('\n');

/** Checks that every code in the documents occurs in the sources (those of the tests' environments in these), and that the table of errors has every `ERR_LOCK_` code of `lib/`. */
const checkCodes = () => {
  const ofLib = sources('lib').match(CODE);
  const others = ['src', 'tests', '__test__/helpers'].flatMap((folder) => sources(folder).match(CODE));
  const known = new Set([...ofLib, ...others]);
  const texts = [...documents.map(({ file }) => file), ...REFERENCE];
  for (const file of texts) {
    read(file)
      .split('\n')
      .forEach((text, index) => {
        for (const code of text.match(CODE) ?? []) {
          if (!known.has(code)) report(file, index + 1, `there is no code ${code}`);
        }
      });
  }
  const rows = read(ERRORS)
    .match(/^\| `ERR_[A-Z_]+` \|/gm)
    .join('\n');
  for (const code of new Set(ofLib)) {
    if (code.startsWith('ERR_LOCK_') && !rows.includes(`\`${code}\``)) report(ERRORS, 1, `no row for ${code} of lib/`);
  }
};

/** Checks that index.d.ts declares what the package exports, and that each class has the members that it declares. */
const checkMembers = () => {
  const compare = (what, declared, actual) => {
    for (const name of declared) if (!actual.includes(name)) report('index.d.ts', 1, `${what} has no ${name}`);
    for (const name of actual) if (!declared.includes(name)) report('index.d.ts', 1, `${what} has ${name}, undeclared`);
  };
  const symbols = new Map([
    [Symbol.dispose, '[Symbol.dispose]'],
    [Symbol.asyncDispose, '[Symbol.asyncDispose]'],
  ]);
  const nameOf = (key) => symbols.get(key) ?? key;
  const keysOf = (object, implied) =>
    Reflect.ownKeys(object)
      // Symbols that it does not declare the package keeps to itself.
      .filter((key) => !implied.includes(key) && (typeof key === 'string' || symbols.has(key)))
      .map(nameOf);

  // Abstract: what others have in common, which the package does not export.
  const classes = new Map(REFERENCE.flatMap((file) => [...exportsOf(file)]));
  const withBase = (members) => {
    const base = classes.get(members?.base);
    if (!base?.isAbstract) return members;
    const both = (kind) => [...new Set([...base[kind], ...members[kind]])];
    return { ofClass: both('ofClass'), ofInstances: both('ofInstances') };
  };
  const declared = new Map(
    [...classes].filter(([, members]) => !members?.isAbstract).map(([name, members]) => [name, withBase(members)]),
  );
  compare('the package', [...declared.keys()], Object.keys(sablock));
  const exported = new Map(Object.entries(sablock).map(([name, value]) => [value.prototype, name]));
  for (const [name, members] of declared) {
    const value = sablock[name];
    if (members === null || value === undefined || value.prototype instanceof Error) continue;
    compare(name, members.ofClass, keysOf(value, ['length', 'name', 'prototype']));
    let ofInstances = [];
    // With what it inherits from classes that the package does not export.
    for (let { prototype } = value; prototype !== Object.prototype; prototype = Object.getPrototypeOf(prototype)) {
      if (prototype !== value.prototype && exported.has(prototype)) {
        // Declarations of that may be overridden here.
        const { ofInstances: ofBase } = declared.get(exported.get(prototype));
        ofInstances = ofInstances.filter((key) => members.ofInstances.includes(key) || !ofBase.includes(key));
        break;
      }
      ofInstances.push(...keysOf(prototype, ['constructor', inspect.custom]));
    }
    compare(`${name}.prototype`, members.ofInstances, ofInstances);
  }
};

const checkGuides = () => {
  const listed = listGuides().map(({ file }) => file);
  for (const { file, blocks } of documents) {
    if (!file.startsWith('docs/guides/')) continue;
    if (!listed.includes(file)) report('README.md', 1, `the list lacks ${file}`);
    const first = blocks.find(({ language }) => language === 'js');
    if (first === undefined) continue;
    if (!blocks.some(({ language }) => language === 'ts')) report(file, first.line, 'not in TypeScript too');
  }
};

/** A path of the repository, as the documents for developers have them; `x` stands for any name. */
const PATH = /^(?:\.ci|__test__|bench|docs|examples|lib|scripts|src|tests|types)\/[\w./-]*$/;

/** The paths that are made by commands, and are in no checkout. */
const MADE = new Set(['docs/api', 'docs/llms-full.txt']);

const checkPaths = () => {
  for (const { file, tokens } of documents) {
    if (file !== 'CONTRIBUTING.md' && !file.startsWith('docs/development/')) continue;
    for (const { child, line } of inlinesOf(tokens)) {
      const { type, content } = child;
      if (type !== 'code_inline' || !PATH.test(content) || /\bx\b/.test(content) || MADE.has(content)) continue;
      if (!fs.existsSync(path.join(root, content))) report(file, line, `no such path: ${content}`);
    }
  }
};

const checkLlms = () => {
  if (read(INDEX) !== generate()[INDEX]) report(INDEX, 1, 'out of date: run npm run docs');
};

const main = async () => {
  checkAllCommands();
  const links = await checkLinks();
  checkCodes();
  checkMembers();
  checkGuides();
  checkPaths();
  checkLlms();

  const references = [...REFERENCE, DOCTOR].map((file) => ({ file, blocks: examplesOf(file) }));
  const programs = [...documents, ...references].flatMap(programsOf);
  const typed = programs.filter(({ isTyped }) => isTyped);
  for (const { file, line, problem } of checkTypes(typed)) report(file, line, problem);
  await runAll(programs.filter(({ node }) => node !== undefined));

  const fragments = programs.filter(({ isFragment }) => isFragment).length;
  console.log(
    `${programs.length - fragments} programs, of which ${typed.length} are typed, ${fragments} fragments, ${links} links in ${documents.length} documents`,
  );
  for (const problem of problems) console.log(problem);
  if (problems.length > 0) process.exitCode = 1;
};

main();
