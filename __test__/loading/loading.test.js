// The package finds its binary, or throws an error that says why not.

const assert = require('node:assert/strict');
const { execFile, execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { promisify } = require('node:util');
const { CC, withCompiler } = require('../helpers/compiler.js');
const { createFolder } = require('../helpers/folder.js');
const { limit } = require('../helpers/limits.js');
const { needs } = require('../helpers/runtime.js');
const { BINARY, installJs, installPackage, PLATFORM } = require('../helpers/installs.js');

const LIMIT = { timeout: limit(40_000) };
const NAME = path.basename(BINARY);
const PROGRAM = path.join(__dirname, '..', 'programs', 'load-error.js');
const SYSTEM = `${process.platform}-${process.arch}, Node.js ${process.versions.node}`;
const onLinux = { ...LIMIT, skip: process.platform !== 'linux' };

function installAlone(t) {
  const folder = createFolder(t);
  installJs(folder);
  return folder;
}

/** Loads the install in a process of its own: the error as data, null if there is none. */
async function load(folder, { nodeArgs = [], args = [] } = {}) {
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const options = { ...LIMIT, cwd: folder, env };
  const { stdout } = await promisify(execFile)(process.execPath, [...nodeArgs, PROGRAM, ...args], options);
  return JSON.parse(stdout);
}

/** Makes its JavaScript that of another version than the binary. */
function setVersion(folder, version) {
  const file = path.join(folder, 'lib', 'load', 'core.js');
  const source = fs.readFileSync(file, 'utf8');
  fs.writeFileSync(file, source.replace(/(?<=VERSION = ')[^']+/, version));
}

const lines = ({ message }) => message.split('\n');

/** The packages that the error names for this system. */
const packages =
  process.platform === 'linux' ? ['gnu', 'musl'].map((libc) => `linux-${process.arch}-${libc}`) : [PLATFORM];
const name = (platform) => `@sablock/binding-${platform}`;

test('the binary of a build in the root of the package is used', LIMIT, async (t) => {
  const folder = installAlone(t);
  fs.copyFileSync(BINARY, path.join(folder, NAME));
  assert.equal(await load(folder), null);
});

test("the binary of the platform's package is used", LIMIT, async (t) => {
  const folder = installAlone(t);
  installPackage(folder, PLATFORM, { [NAME]: fs.readFileSync(BINARY) });
  assert.equal(await load(folder), null);
});

test('the binary of a build is used though there is a package, which may be of another version', LIMIT, async (t) => {
  const folder = installAlone(t);
  fs.copyFileSync(BINARY, path.join(folder, NAME));
  installPackage(folder, PLATFORM, { 'index.js': "module.exports = { VERSION: '0.0.1' };" });
  assert.equal(await load(folder), null);
});

test('a build that does not load gives way to the package', LIMIT, async (t) => {
  const folder = installAlone(t);
  fs.writeFileSync(path.join(folder, NAME), 'no binary');
  installPackage(folder, PLATFORM, { [NAME]: fs.readFileSync(BINARY) });
  assert.equal(await load(folder), null);
});

test(
  'on Linux the package for musl is used where the one for glibc is missing or does not load',
  onLinux,
  async (t) => {
    for (const gnu of [undefined, 'no binary']) {
      const folder = installAlone(t);
      if (gnu !== undefined) installPackage(folder, `linux-${process.arch}-gnu`, { 'sablock.node': gnu });
      installPackage(folder, `linux-${process.arch}-musl`, { [NAME]: fs.readFileSync(BINARY) });
      assert.equal(await load(folder), null);
    }
  },
);

test('without a binary the error names each package that was looked for, and says how to get it', LIMIT, async (t) => {
  const error = await load(installAlone(t));
  assert.equal(error.code, 'ERR_LOCK_NO_BINARY');
  const [first, ...rest] = lines(error);
  assert.equal(first, `sablock could not load its binary (${SYSTEM}). Tried:`);
  assert.deepEqual(
    rest.slice(0, -1),
    packages.map((platform) => `- ${name(platform)}: not installed`),
  );
  assert.match(rest.at(-1), /optional dependency.*without --omit=optional.*bundler must leave sablock external/);
});

test('the cause of the error is the error of the one attempt, or an AggregateError of all', LIMIT, async (t) => {
  const onMac = ['--platform', 'darwin', '--arch', 'arm64'];
  const one = await load(installAlone(t), { args: onMac });
  assert.equal(one.cause.code, 'MODULE_NOT_FOUND');
  const onOldLinux = ['--platform', 'linux', '--arch', 'arm64'];
  const { cause } = await load(installAlone(t), { args: onOldLinux });
  assert.equal(cause.name, 'AggregateError');
  assert.deepEqual(
    cause.errors.map(({ code, message }) => [code, /'(.*)'/.exec(message)[1]]),
    ['gnu', 'musl'].map((libc) => ['MODULE_NOT_FOUND', name(`linux-arm64-${libc}`)]),
  );
});

test('a package without its file is reported differently from one that is not installed', {
  ...LIMIT,
  ...needs('broken packages'),
}, async (t) => {
  const folder = installAlone(t);
  installPackage(folder, PLATFORM, {}, NAME);
  const error = await load(folder);
  assert.equal(error.code, 'ERR_LOCK_NO_BINARY');
  assert.ok(lines(error).includes(`- ${name(PLATFORM)}: installed without its binary`), error.message);
  assert.match(lines(error).at(-1), /virus scanner/);
  assert.doesNotMatch(error.message, /--omit=optional/);
});

test('a truncated file is reported, in a package and as a build', LIMIT, async (t) => {
  const truncated = fs.readFileSync(BINARY).subarray(0, 40);
  const folder = installAlone(t);
  fs.writeFileSync(path.join(folder, NAME), truncated);
  installPackage(folder, PLATFORM, { [NAME]: truncated });
  const error = await load(folder);
  assert.equal(error.code, 'ERR_LOCK_NO_BINARY');
  for (const place of [path.join(folder, NAME), name(PLATFORM)]) {
    const line = lines(error).find((text) => text.startsWith(`- ${place}: `));
    assert.match(line, /: the file is damaged, or made for another system \(.*\)$/);
  }
  assert.match(lines(error).at(-1), /Remove node_modules and install again/);
  assert.doesNotMatch(error.message, /--omit=optional/);
});

/** A library that needs `symbol@version` of the library `needs`, which the system does not have in this way. */
function compileMisfit(folder, needs, version) {
  const cc = (...args) => execFileSync(CC, ['-shared', '-fPIC', '-nostdlib', ...args], { cwd: folder });
  fs.writeFileSync(path.join(folder, 'other.c'), 'int sablock_misfit(void) { return 0; }');
  fs.writeFileSync(
    path.join(folder, 'misfit.c'),
    'int sablock_misfit(void); int call(void) { return sablock_misfit(); }',
  );
  fs.writeFileSync(path.join(folder, 'versions'), `${version} { global: *; };`);
  cc(`-Wl,-soname,${needs}`, '-Wl,--version-script=versions', '-o', 'other.so', 'other.c');
  cc('-o', 'misfit.node', 'misfit.c', './other.so');
  return fs.readFileSync(path.join(folder, 'misfit.node'));
}

test('a binary for a newer glibc is reported', { ...LIMIT, ...withCompiler }, async (t) => {
  const folder = installAlone(t);
  installPackage(folder, PLATFORM, { [NAME]: compileMisfit(createFolder(t), 'libc.so.6', 'GLIBC_2.99') });
  const error = await load(folder);
  assert.equal(error.code, 'ERR_LOCK_NO_BINARY');
  assert.match(lines(error)[1], /needs a newer glibc than this system has \(.*GLIBC_2\.99.*\)/);
  assert.match(lines(error).at(-1), /glibc 2\.17 or later/);
});

// The names of musl in binaries that Alpine's linker, and zig, have linked.
for (const library of ['libc.musl-x86_64.so.1', 'libc.so']) {
  test(`a binary for musl (${library}) where glibc is the C library is reported`, {
    ...LIMIT,
    ...withCompiler,
  }, async (t) => {
    const folder = installAlone(t);
    const [gnu, musl] = ['gnu', 'musl'].map((libc) => `linux-${process.arch}-${libc}`);
    installPackage(folder, musl, { [NAME]: compileMisfit(createFolder(t), library, 'MUSL') });
    const error = await load(folder);
    assert.equal(error.code, 'ERR_LOCK_NO_BINARY');
    assert.equal(lines(error)[1], `- ${name(gnu)}: not installed`);
    assert.match(lines(error)[2], /made for another C library than that of this system \(.*libc\./);
    assert.match(lines(error).at(-1), /glibc and musl.*install again, on the system where the program runs/);
  });
}

const permission = ['--permission', '--experimental-permission'].find((flag) =>
  process.allowedNodeEnvironmentFlags.has(flag),
);

for (const [title, nodeArgs, need] of [
  ['--permission without --allow-addons', [permission, '--allow-fs-read=*']],
  ['--no-addons', ['--no-addons'], needs('no addons')],
]) {
  const skip = nodeArgs[0] === undefined;
  test(`under ${title} the error says that addons are disabled, and how to allow them`, {
    ...LIMIT,
    skip,
    ...need,
  }, async (t) => {
    const folder = installAlone(t);
    installPackage(folder, PLATFORM, { [NAME]: fs.readFileSync(BINARY) });
    const error = await load(folder, { nodeArgs });
    assert.equal(error.code, 'ERR_LOCK_NO_BINARY');
    assert.ok(lines(error).includes(`- ${name(PLATFORM)}: native addons are disabled in this process`), error.message);
    assert.equal(lines(error).at(-1), 'Run Node.js with --allow-addons beside --permission, and without --no-addons.');
    assert.doesNotMatch(error.message, /--omit=optional/);
  });
}

test(
  "a file that Deno's permissions keep from being loaded is reported with the flags that permit it",
  LIMIT,
  async (t) => {
    const folder = installAlone(t);
    const refusal = "Object.assign(new Error('Requires ffi access to a file'), { name: 'NotCapable' })";
    installPackage(folder, PLATFORM, { 'index.js': `throw ${refusal};` });
    const error = await load(folder);
    assert.equal(error.code, 'ERR_LOCK_NO_BINARY');
    const line = `- ${name(PLATFORM)}: Deno does not permit it (Requires ffi access to a file)`;
    assert.ok(lines(error).includes(line), error.message);
    assert.equal(lines(error).at(-1), 'Run Deno with --allow-read and --allow-ffi.');
    assert.doesNotMatch(error.message, /install again/);
  },
);

// A child without any flag of permissions would get all of them from its parent.
const onDeno = { ...LIMIT, skip: process.versions.deno === undefined };
for (const [title, flags, expected] of [
  [
    'without permissions the error names both',
    ['--allow-env'],
    /Deno does not permit it \(Requires read access .*^Run Deno with --allow-read and --allow-ffi\.$/ms,
  ],
  [
    'with --allow-read alone the error names both',
    ['--allow-read'],
    /Deno does not permit it \(Requires ffi access .*^Run Deno with --allow-read and/ms,
  ],
  ['with --allow-read and --allow-ffi the package loads', ['--allow-read', '--allow-ffi'], /^Loaded/],
]) {
  test(`on Deno ${title}`, onDeno, async (t) => {
    const folder = createFolder(t);
    const home = path.join(folder, 'node_modules', 'sablock');
    fs.mkdirSync(home, { recursive: true });
    installJs(home);
    installPackage(folder, PLATFORM, { [NAME]: fs.readFileSync(BINARY) });
    fs.writeFileSync(path.join(folder, 'package.json'), '{}'); // what makes Deno read node_modules by itself
    const program = path.join(folder, 'program.cjs');
    const code = "try { require('sablock'); console.log('Loaded'); } catch (error) { console.log(error.message); }";
    fs.writeFileSync(program, code);
    const args = ['run', '--no-prompt', ...flags, program];
    const { stdout } = await promisify(execFile)(process.execPath, args, { ...LIMIT, cwd: folder });
    assert.match(stdout, expected);
  });
}

test('with --permission and --allow-addons the package loads', {
  ...LIMIT,
  skip: permission === undefined,
}, async (t) => {
  const folder = installAlone(t);
  installPackage(folder, PLATFORM, { [NAME]: fs.readFileSync(BINARY) });
  assert.equal(await load(folder, { nodeArgs: [permission, '--allow-fs-read=*', '--allow-addons'] }), null);
});

for (const [platform, arch] of [
  ['wasi', 'wasm32'],
  ['freebsd', 'x64'],
  ['aix', 'ppc64'],
]) {
  test(`on ${platform}-${arch}, for which there is no package, the error says so`, LIMIT, async (t) => {
    const error = await load(installAlone(t), { args: ['--platform', platform, '--arch', arch] });
    assert.equal(error.code, 'ERR_LOCK_NO_BINARY');
    assert.ok(
      error.message.startsWith(`sablock has no binary for this platform (${platform}-${arch}, `),
      error.message,
    );
    assert.match(error.message, /Linux.*macOS.*Windows.*x64 and arm64.*WebAssembly \(WASI\) cannot.*memory/);
  });
}

for (const platform of [
  'linux-x64-gnu',
  'linux-arm64-musl',
  'darwin-x64',
  'darwin-arm64',
  'win32-x64-msvc',
  'win32-arm64-msvc',
]) {
  test(`${platform} needs its package`, LIMIT, async (t) => {
    const folder = installAlone(t);
    installPackage(folder, platform, { 'index.js': `throw new Error('this is ${platform}');` });
    const [system, processor] = platform.split('-');
    const error = await load(folder, { args: ['--platform', system, '--arch', processor] });
    const line = lines(error).find((text) => text.startsWith(`- ${name(platform)}: `));
    assert.match(line, new RegExp(`this is ${platform}`));
  });
}

test(
  'a binary of another version than the files is refused, and the error names both versions and the place',
  LIMIT,
  async (t) => {
    const { version } = require('../../package.json');
    const folder = installAlone(t);
    const home = installPackage(folder, PLATFORM, { [NAME]: fs.readFileSync(BINARY) });
    setVersion(folder, '0.0.1');
    const error = await load(folder);
    assert.equal(error.code, 'ERR_LOCK_VERSION_MISMATCH');
    assert.ok(error.message.includes('version 0.0.1') && error.message.includes(`version ${version}`), error.message);
    assert.ok(error.message.includes(path.join(home, NAME)), error.message);
    assert.match(error.message, /Install sablock again/);
  },
);

test('a build of another version says to build again', LIMIT, async (t) => {
  const folder = installAlone(t);
  fs.copyFileSync(BINARY, path.join(folder, NAME));
  setVersion(folder, '0.0.1');
  const error = await load(folder);
  assert.equal(error.code, 'ERR_LOCK_VERSION_MISMATCH');
  assert.match(error.message, /npm run build/);
});

test('a binary from before binaries had a version is refused', LIMIT, async (t) => {
  const folder = installAlone(t);
  const old = `const { VERSION, ...rest } = require('./${NAME}'); module.exports = rest;`;
  installPackage(folder, PLATFORM, { 'index.js': old, [NAME]: fs.readFileSync(BINARY) });
  const error = await load(folder);
  assert.equal(error.code, 'ERR_LOCK_VERSION_MISMATCH');
  assert.match(error.message, /has version unknown/);
});

test('package.json, Cargo.toml and lib/load/binary.js have one version', () => {
  const read = (file) => fs.readFileSync(path.join(__dirname, '..', '..', file), 'utf8');
  const { version } = require('../../package.json');
  assert.equal(/^version = "(.*)"/m.exec(read('Cargo.toml'))[1], version);
  assert.equal(/VERSION = '(.*)'/.exec(read('lib/load/binary.js'))[1], version);
});

/** Messages of loaders, and what each means. */
const MEANINGS = {
  "/lib/libc.so.6: version `GLIBC_2.34' not found (required by x.node)": [/newer glibc/, /glibc 2\.17.*Develop/],
  'libc.musl-x86_64.so.1: cannot open shared object file: No such file': [/another C library/, /a package each/],
  'Error loading shared library ld-linux-x86-64.so.2: No such file': [/another C library/, /a package each/],
  'Error relocating /x.node: __snprintf_chk: symbol not found': [/another C library/, /a package each/],
  'x.node: file too short': [/damaged, or made for another system/, /Remove node_modules/],
  'x.node: invalid ELF header': [/damaged, or made for another system/, /Remove node_modules/],
  "dlopen(x.node): tried: 'x.node' (mach-o file, but is an incompatible architecture)": [
    /damaged, or/,
    /Remove node_modules/,
  ],
  'x.node is not a valid Win32 application.': [/damaged, or made for another system/, /Remove node_modules/],
  'something else': [/the system does not load it/, /Remove node_modules.*Develop/],
};

test('what a loader says is told with its meaning, its first line alone, and with advice once', LIMIT, () => {
  const { noBinary } = require('../../lib/load/load-errors.js');
  for (const [said, [reason, advice]] of Object.entries(MEANINGS)) {
    const error = new Error(`${said}\nRequire stack:\n- /app/x.js`);
    const failures = ['one', 'other'].map((name) => ({ name, error }));
    const [, first, second, last, ...more] = lines(noBinary(failures));
    for (const [name, line] of [
      ['one', first],
      ['other', second],
    ]) {
      assert.ok(line.startsWith(`- ${name}: `) && line.endsWith(` (${said})`), line);
      assert.match(line, reason);
    }
    assert.match(last, advice);
    assert.deepEqual(more, [], 'advice that is that of both');
  }
  const thrown = noBinary([{ name: 'one', error: 'no error' }]);
  assert.match(lines(thrown)[1], /^- one: .* \(no error\)$/);
});

test('where only WebAssembly runs, as in a WebContainer, the error says why that does not help', {
  ...LIMIT,
  ...needs('preloading'),
}, async (t) => {
  const preload = path.join(createFolder(t), 'webcontainer.js');
  fs.writeFileSync(preload, "Object.defineProperty(process.versions, 'webcontainer', { value: '1' });");
  const error = await load(installAlone(t), { nodeArgs: ['--require', preload] });
  assert.match(lines(error).at(-1), /^A WebContainer runs only WebAssembly/);
  assert.doesNotMatch((await load(installAlone(t))).message, /WebContainer/);
});

test('what is loaded late drops the pieces of its own modules that were interrupted, and nothing of the program', (t) => {
  const { lazily } = require('../../lib/load/lazily.js');
  const own = (...names) => path.join(__dirname, '..', '..', 'lib', ...names);
  const modules = {
    [own('engine', 'piece.js')]: { isLoaded: false, stays: false },
    [own('engine', 'whole.js')]: { isLoaded: true, stays: true },
    // A program may still be loading one of these, and itself, when something waits.
    [own('stores', 'redis.js')]: { isLoaded: false, stays: true },
    [path.join(__dirname, 'program.js')]: { isLoaded: false, stays: true },
  };
  const before = { ...require.cache };
  t.after(() => {
    for (const file of Object.keys(modules)) {
      delete require.cache[file];
      if (before[file] !== undefined) require.cache[file] = before[file];
    }
  });
  for (const [file, { isLoaded }] of Object.entries(modules)) require.cache[file] = { loaded: isLoaded };
  let count = 0;
  const get = lazily(() => ++count);
  assert.deepEqual([count, get(), get()], [0, 1, 1]);
  assert.deepEqual(
    Object.keys(modules).map((file) => file in require.cache),
    Object.values(modules).map(({ stays }) => stays),
  );
});
