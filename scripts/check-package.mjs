// npm run check:package: packs both packages of this machine, installs them as a user does, and checks them. They have the files
// that are listed here and no others, within limits of size; publint and "are the types wrong" report nothing; and CommonJS,
// ES module and TypeScript programs work in an empty folder, without the network and without a compiler.
// `npm run check:package -- DIR` uses the tarballs in a folder, which may have those of other platforms too.

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
const { packLocal, PLATFORMS, VERSION } = require('./packages.js');
const ROOT = fileURLToPath(new URL('..', import.meta.url));

const FILES = `
  CHANGELOG.md LICENSE README.md index.d.ts index.js package.json
  docs/guides/blocking-and-awaiting.md docs/guides/bundling.md docs/guides/choosing-a-lock.md docs/guides/command-line.md
  docs/guides/deadlocks.md docs/guides/diagnosis.md docs/guides/errors.md docs/guides/from-async-mutex.md
  docs/guides/from-atomics.md docs/guides/from-java-and-dotnet.md docs/guides/from-multithreading.md
  docs/guides/from-proper-lockfile.md docs/guides/from-redlock.md docs/guides/from-web-locks.md docs/guides/guarantees.md
  docs/guides/locks-among-machines.md docs/guides/locks-among-processes.md docs/guides/operating-stores.md docs/guides/patterns.md docs/guides/platforms.md
  docs/guides/program-hangs.md docs/guides/program-slow.md docs/guides/testing.md docs/guides/when-a-thread-ends.md
  types/barrier.d.ts types/channels.d.ts types/condition.d.ts types/errors.d.ts types/events.d.ts types/exchanger.d.ts types/futex.d.ts
  types/inspection.d.ts types/latch.d.ts types/layout.d.ts types/lockable.d.ts types/mutex.d.ts types/named.d.ts types/once.d.ts
  types/options.d.ts types/primitive.d.ts types/rwlock.d.ts types/semaphore.d.ts types/several.d.ts types/stores.d.ts types/table.d.ts
  types/entries/diagnostics-channels.d.ts types/entries/doctor.d.ts types/entries/etcd.d.ts types/entries/mysql.d.ts types/entries/postgres.d.ts types/entries/redis.d.ts
  lib/arguments.js lib/error-stack.js lib/errors.js lib/misspelt-options.js
  lib/load/binary.js lib/load/clock.js lib/load/core.js lib/load/lazily.js lib/load/load-errors.js
  lib/cli/child.js lib/cli/clean.js lib/cli/doctor.js lib/cli/index.js lib/cli/locks.js lib/cli/nested.js lib/cli/output.js lib/cli/record.js lib/cli/run.js
  lib/doctor/holds.js lib/doctor/index.js lib/doctor/inside.js lib/doctor/locks.js
  lib/doctor/options.js lib/doctor/order.js lib/doctor/profile.js lib/doctor/sites.js lib/doctor/swap.js
  lib/doctor/tasks.js lib/doctor/thread-doctor.js lib/doctor/trace.js lib/doctor/verbs.js lib/doctor/waits.js
  lib/engine/abandonment.js lib/engine/corrupt.js lib/engine/diagnosis.js lib/engine/error-text.js lib/engine/inspection.js
  lib/engine/lock-worker.js lib/engine/names.js lib/engine/outer-wait.js lib/engine/pending-wait.js lib/engine/register.js lib/engine/signals.js lib/engine/stack.js
  lib/engine/thread.js lib/engine/timer.js lib/engine/wait.js
  lib/named/backend.js lib/named/blocking.js lib/named/errors.js lib/named/held-lock.js lib/named/holders.js lib/named/machine-errors.js lib/named/machine.js lib/named/manager.js
  lib/named/options.js lib/named/outside.js lib/named/requests.js lib/named/rows.js lib/named/several.js lib/named/take-over.js lib/named/watch.js
  lib/stores/client.js lib/stores/keeper.js lib/stores/leases/keeper.js lib/stores/leases/place.js lib/stores/errors.js lib/stores/etcd.js lib/stores/events.js lib/stores/retry.js lib/stores/outer.js lib/stores/owner.js lib/stores/mysql.js lib/stores/postgres.js lib/stores/redis.js lib/stores/service.js lib/stores/store-hold.js lib/stores/store.js lib/stores/urls.js lib/stores/verbs.js
  lib/stores/etcd/connection.js lib/stores/etcd/gateway.js lib/stores/etcd/keeper.js lib/stores/etcd/place.js lib/stores/etcd/session.js
  lib/stores/mysql/connect.js lib/stores/mysql/keeper.js lib/stores/mysql/options.js lib/stores/mysql/session.js
  lib/stores/worker.js lib/stores/postgres/connect.js lib/stores/postgres/keeper.js lib/stores/postgres/options.js
  lib/stores/postgres/session.js lib/stores/sessions/keeper.js lib/stores/sessions/probe.js lib/stores/sessions/session.js lib/stores/sessions/waits.js lib/stores/redis/client.js lib/stores/redis/eviction.js lib/stores/redis/keeper.js lib/stores/redis/options.js lib/stores/redis/place.js lib/stores/redis/rights.js lib/stores/redis/script.js
  lib/primitives/barrier.js lib/primitives/base.js lib/primitives/condition.js lib/primitives/event.js
  lib/primitives/exchanger.js lib/primitives/exclusive.js lib/primitives/futex.js
  lib/primitives/guard.js lib/primitives/hash.js lib/primitives/integers.js lib/primitives/latch.js lib/primitives/layout.js
  lib/primitives/lock-all.js lib/primitives/lock-table.js lib/primitives/mutex.js lib/primitives/once.js lib/primitives/read-lock.js
  lib/primitives/rwlock-guard.js lib/primitives/rwlock.js lib/primitives/semaphore.js
`;
/** A program in a document. */
const CODE = /^```.*?^```$/gms;
/** The programs of a user in TypeScript. */
const PROGRAMS = ['program', 'entries'];
const BINDING_FILES = 'LICENSE README.md THIRD-PARTY-LICENSES package.json';
const MAX_MAIN = 285e3;
const MAX_BINARY = 2.1e6;

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
  packLocal(packages);
  return findTarballs(packages);
}

/** The tarballs by the names of their packages. */
function findTarballs(packages) {
  const names = ['sablock', ...PLATFORMS.map(({ packageName }) => packageName)];
  // As npm writes a scope in the name of a file.
  const fileOf = (name) => path.join(packages, `${name.replace('@', '').replace('/', '-')}-${VERSION}.tgz`);
  return new Map(names.map((name) => [name, fileOf(name)]).filter(([, file]) => fs.existsSync(file)));
}

/** The platforms' packages are optional dependencies, as they are for users: npm installs the one that fits. */
function install(tarballs) {
  const dependencies = Object.fromEntries(Array.from(tarballs, ([name, file]) => [name, `file:${file}`]));
  const { sablock, ...optionalDependencies } = dependencies;
  const manifest = { private: true, dependencies: { sablock }, optionalDependencies };
  fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest));
  const options = { cwd: folder, stdio: 'inherit', shell: process.platform === 'win32' };
  execFileSync('npm', ['install', '--silent', '--offline', '--no-package-lock'], options);
}

async function checkMain(tarballs) {
  const { name, files, manifest, home } = await inspect('sablock');
  checkFiles(name, files, FILES.trim().split(/\s+/));
  for (const document of files.filter((file) => file.endsWith('.md') && file !== 'CHANGELOG.md')) {
    const text = fs.readFileSync(path.join(home, document), 'utf8');
    const links = Array.from(text.matchAll(/\]\((?!https?:|#)([^)#]+)/g), ([, file]) => file);
    if (document === 'README.md') assert.ok(links.length > 0, 'The README links to the reference.');
    const broken = links.filter((file) => !fs.existsSync(path.join(home, path.dirname(document), file)));
    assert.deepEqual(broken, [], `${document} links to what is not in the package.`);
    assert.deepEqual(text.match(CODE), fs.readFileSync(path.join(ROOT, document), 'utf8').match(CODE));
  }
  assert.equal(manifest.scripts, undefined, 'npm would run the scripts when a user installs the package.');
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
  const { name, files, manifest, home } = await inspect(`@sablock/${installed[0]}`);
  checkFiles(name, files, [...BINDING_FILES.split(' '), manifest.main]);
  assert.equal(manifest.version, VERSION);
  const { size } = fs.statSync(path.join(home, manifest.main));
  assert.ok(size < MAX_BINARY, `The binary has ${size} bytes.`);
  console.log(`${name}: ${size} bytes of binary, ${fs.statSync(tarballs.get(name)).size} bytes packed.`);
}

function checkFiles(name, files, listed) {
  const strange = files.filter((file) => !listed.includes(file));
  const missing = listed.filter((file) => !files.includes(file));
  const message = `Of ${name}, not listed here: ${strange.join(', ') || 'none'}. Missing: ${missing.join(', ') || 'none'}.`;
  assert.ok(strange.length + missing.length === 0, message);
}

/** Reads an installed package, after publint has reported nothing. */
async function inspect(name) {
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
  const named = (extension) => PROGRAMS.map((name) => `${name}.${extension}`);
  for (const name of PROGRAMS) {
    const source = path.join(folder, `${name}.ts`);
    for (const extension of ['mts', 'cts']) fs.copyFileSync(source, path.join(folder, `${name}.${extension}`));
  }
  const shared = ['--strict', '--target', 'es2022'];
  tsc(require, [...shared, '--module', 'nodenext', ...named('mts'), ...named('cts')]);
  for (const program of [...named('mjs'), ...named('cjs')]) run(program);
  // TypeScript 7 no longer has the resolution that ignores "exports" in package.json; that of the checker above has it.
  const olderRequire = createRequire(import.meta.resolve('@arethetypeswrong/core'));
  tsc(olderRequire, [...shared, '--module', 'commonjs', '--moduleResolution', 'node10', ...named('ts')]);
  for (const program of named('js')) run(program);
}

function tsc(requireFrom, args) {
  const home = path.dirname(requireFrom.resolve('typescript/package.json'));
  execFileSync(process.execPath, [path.join(home, 'bin', 'tsc'), ...args], { cwd: folder, stdio: 'inherit' });
}

/** With nothing on the PATH. */
function run(program) {
  execFileSync(process.execPath, [program], { cwd: folder, stdio: 'inherit', env: { ...process.env, PATH: '' } });
}
