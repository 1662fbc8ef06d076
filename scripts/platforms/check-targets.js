// npm run check:targets [-- --shard 0/2 | TARGET ...]: the types of all targets in package.json, or of these, with warnings denied.
// Of two shards each has all systems, on one architecture. Nothing is linked, so that no target needs more than its standard
// library. `--from-source` is the way without rustup's targets.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { napi } = require('../../package.json');
const { SHARD, ofShard } = require('../shard.js');
const { rustFor } = require('./rust.js');
const { runScript } = require('./system.js');

const root = path.join(__dirname, '..', '..');
const WORK = path.join(root, 'target', 'check-targets');

function cargo(rust, flags, args, cwd, more = {}) {
  const env = { ...process.env, ...rust.env, ...more, RUSTFLAGS: flags };
  const { status } = spawnSync(rust.cargo, ['check', '--quiet', ...args], { cwd, env, stdio: 'inherit' });
  if (status !== 0) process.exit(1);
}

const named = (targets) => targets.flatMap((target) => ['--target', target]);

/**
 * A sysroot for the targets, with metadata only: all that a check reads. (`-Zbuild-std` compiles the library, even to check.)
 * It is kept for the next run with the same compiler.
 */
function sysrootOf(rust, targets) {
  const { stdout } = spawnSync(rust.env.RUSTC, ['--version', '--verbose'], { encoding: 'utf8' });
  const version = /release: (\S+)/.exec(stdout)[1];
  const work = path.join(WORK, `std-${version}`);
  const sysroot = path.join(work, 'sysroot');
  const libraryOf = (target) => path.join(sysroot, 'lib', 'rustlib', target, 'lib');
  const missing = targets.filter((target) => !fs.existsSync(libraryOf(target)));
  if (missing.length === 0) return sysroot;
  const source = (name) => JSON.stringify(path.join(rust.library, name));
  const replaced = ['core', 'alloc', 'std'].map((name) => `rustc-std-workspace-${name}`);
  const manifest = [
    '[package]\nname = "std-metadata"\nedition = "2024"\n[lib]\npath = "lib.rs"\n[workspace]\n[dependencies]',
    `std.path = ${source('std')}`,
    `sysroot.path = ${source('sysroot')}`,
    '[patch.crates-io]',
    ...replaced.map((name) => `${name}.path = ${source(name)}`),
  ];
  fs.mkdirSync(work, { recursive: true });
  fs.writeFileSync(path.join(work, 'Cargo.toml'), `${manifest.join('\n')}\n`);
  fs.writeFileSync(path.join(work, 'lib.rs'), '');
  fs.copyFileSync(path.join(rust.library, 'Cargo.lock'), path.join(work, 'Cargo.lock'));
  cargo(rust, '-Zforce-unstable-if-unmarked --cap-lints=allow -C target-feature=-crt-static', named(missing), work, {
    __CARGO_DEFAULT_LIB_METADATA: 'sablock',
    CARGO_TARGET_DIR: path.join(work, 'target'),
  });
  for (const target of missing) {
    const built = path.join(work, 'target', target, 'debug', 'deps');
    const unfinished = `${libraryOf(target)}.new`;
    fs.mkdirSync(unfinished, { recursive: true });
    for (const file of fs.readdirSync(built).filter((file) => file.endsWith('.rmeta'))) {
      fs.copyFileSync(path.join(built, file), path.join(unfinished, file));
    }
    fs.renameSync(unfinished, libraryOf(target));
  }
  return sysroot;
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { 'from-source': { type: 'boolean', default: false }, shard: SHARD },
  });
  const unknown = positionals.find((target) => !napi.targets.includes(target));
  if (unknown !== undefined) throw new Error(`No such target in package.json: ${unknown}`);
  const targets = ofShard(positionals.length > 0 ? positionals : napi.targets, values.shard);
  const rust = rustFor(targets, { isFromSource: values['from-source'] });
  const sysroot = rust.library === null ? [] : [`--sysroot=${sysrootOf(rust, targets)}`];
  // musl has shared libraries without the C runtime in them only, as `napi build` makes ours.
  const flags = ['-Dwarnings', '-Ctarget-feature=-crt-static', ...sysroot];
  cargo(rust, flags.join(' '), ['--lib', ...named(targets)], root, { CARGO_TARGET_DIR: path.join(WORK, 'sablock') });
  console.log(`No error and no warning on ${targets.join(', ')}`);
}

runScript(main);
