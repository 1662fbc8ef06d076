// npm run check:package: packs both packages of this machine and looks at them as a user gets them. Their files are those
// listed here, within bounds; publint and "are the types wrong" have nothing to say; and CommonJS, ES module and TypeScript
// programs in an empty folder work, without the network and without a compiler.
// `npm run check:package -- DIR` takes the tarballs of a folder, which may have those of other platforms too.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';

const require = createRequire(import.meta.url);
const { version } = require('../package.json');
const ROOT = fileURLToPath(new URL('..', import.meta.url));

const FILES = `
  CHANGELOG.md LICENSE README.md index.d.ts index.js llms-full.txt package.json
  lib/arguments.js lib/binary.js lib/condition.js lib/diagnosis.js lib/errors.js lib/futex.js lib/guard.js lib/integers.js
  lib/lazily.js lib/load-errors.js lib/mutex.js lib/pending-wait.js lib/signals.js lib/thread.js lib/wait.js
`;
const BINDING_FILES = 'LICENSE README.md THIRD-PARTY-LICENSES package.json';
const MAX_MAIN = 100e3;
const MAX_BINARY = 1.5e6;

const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-check-')));
try {
  const [given] = process.argv.slice(2);
  const tarballs = given === undefined ? pack() : findTarballs(path.resolve(process.env.INIT_CWD ?? '.', given));
  install(tarballs);
  await checkMain(tarballs);
  await checkBinding(tarballs);
  await checkPrograms();
  console.log('The packages are as they should be.');
} finally {
  fs.rmSync(folder, { recursive: true });
}

function pack() {
  const packages = path.join(folder, 'packages');
  execFileSync(process.execPath, [path.join(ROOT, 'scripts', 'pack-local.js'), packages]);
  return findTarballs(packages);
}

/** Names of packages to their tarballs. */
function findTarballs(packages) {
  const { PLATFORMS } = require('./packages.js');
  const names = ['sablock', ...PLATFORMS.map(({ packageName }) => packageName)];
  // What npm makes of a scope.
  const fileOf = (name) => path.join(packages, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`);
  return new Map(names.map((name) => [name, fileOf(name)]).filter(([, file]) => fs.existsSync(file)));
}

/** Of the platforms' packages, optional as they are for users, npm takes the one that fits. */
function install(tarballs) {
  const dependencies = Object.fromEntries(Array.from(tarballs, ([name, file]) => [name, `file:${file}`]));
  const { sablock, ...optionalDependencies } = dependencies;
  const manifest = { private: true, dependencies: { sablock }, optionalDependencies };
  fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest));
  const options = { cwd: folder, stdio: 'inherit', shell: process.platform === 'win32' };
  execFileSync('npm', ['install', '--silent', '--offline', '--no-package-lock'], options);
}

async function checkMain(tarballs) {
  const { name, files, manifest } = await look('sablock');
  checkFiles(name, files, FILES.trim().split(/\s+/));
  assert.equal(manifest.scripts, undefined, 'Scripts would run at the user.');
  assert.equal(manifest.dependencies, undefined);
  const packed = fs.readFileSync(tarballs.get(name));
  assert.ok(packed.length < MAX_MAIN, `${name} has ${packed.length} bytes packed.`);
  const { problems } = await checkPackage(createPackageFromTarballData(packed));
  assert.deepEqual(problems, [], 'Are the types wrong?');
  console.log(`${name}: ${files.length} files, ${packed.length} bytes packed.`);
}

async function checkBinding(tarballs) {
  const installed = fs.readdirSync(path.join(folder, 'node_modules', '@sablock'));
  assert.equal(installed.length, 1, `Of ${tarballs.size - 1} platforms, these were installed: ${installed}`);
  const { name, files, manifest, home } = await look(`@sablock/${installed[0]}`);
  checkFiles(name, files, [...BINDING_FILES.split(' '), manifest.main]);
  assert.equal(manifest.version, version);
  const { size } = fs.statSync(path.join(home, manifest.main));
  assert.ok(size < MAX_BINARY, `The binary has ${size} bytes.`);
  console.log(`${name}: ${size} bytes of binary, ${fs.statSync(tarballs.get(name)).size} bytes packed.`);
}

function checkFiles(name, files, listed) {
  const strange = files.filter((file) => !listed.includes(file));
  const missing = listed.filter((file) => !files.includes(file));
  const answer = `${name} has what is not listed here: ${strange.join(', ')}; and lacks: ${missing.join(', ')}.`;
  assert.ok(strange.length + missing.length === 0, answer);
}

/** An installed package, about which publint has nothing to say. */
async function look(name) {
  const home = path.join(folder, 'node_modules', name);
  const manifest = JSON.parse(fs.readFileSync(path.join(home, 'package.json'), 'utf8'));
  const { messages } = await publint({ pkgDir: home, pack: false });
  assert.deepEqual(
    messages.map((message) => formatMessage(message, manifest)),
    [],
    `publint about ${name}`,
  );
  const entries = fs.readdirSync(home, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const files = entries.map((entry) => path.relative(home, path.join(entry.parentPath ?? entry.path, entry.name)));
  return { name, home, manifest, files: files.map((file) => file.replaceAll('\\', '/')) };
}

async function checkPrograms() {
  fs.cpSync(path.join(ROOT, 'scripts', 'try-package'), folder, { recursive: true });
  for (const program of ['try.js', 'try.mjs']) run(program);
  const source = path.join(folder, 'program.ts');
  for (const extension of ['mts', 'cts']) fs.copyFileSync(source, path.join(folder, `program.${extension}`));
  const shared = ['--strict', '--target', 'es2022'];
  tsc(require, [...shared, '--module', 'nodenext', 'program.mts', 'program.cts']);
  run('program.mjs');
  run('program.cjs');
  // TypeScript 7 has no resolution of before package.json had "exports" any more; that of the checker above has.
  const olderRequire = createRequire(import.meta.resolve('@arethetypeswrong/core'));
  tsc(olderRequire, [...shared, '--module', 'commonjs', '--moduleResolution', 'node10', 'program.ts']);
  run('program.js');
}

function tsc(requireFrom, args) {
  const home = path.dirname(requireFrom.resolve('typescript/package.json'));
  execFileSync(process.execPath, [path.join(home, 'bin', 'tsc'), ...args], { cwd: folder, stdio: 'inherit' });
}

/** With nothing on the PATH. */
function run(program) {
  execFileSync(process.execPath, [program], { cwd: folder, stdio: 'inherit', env: { ...process.env, PATH: '' } });
}
