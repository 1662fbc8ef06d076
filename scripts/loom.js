// npm run test:loom: the loom models of the Rust core, which need a flag that must not reach any other build.

const { spawnSync } = require('node:child_process');
const path = require('node:path');

const args = ['test', '--no-default-features', '--test', 'loom', ...process.argv.slice(2)];
const target = path.join(__dirname, '..', 'target', 'loom');
const env = { ...process.env, RUSTFLAGS: '--cfg loom', CARGO_TARGET_DIR: target };
process.exitCode = spawnSync('cargo', args, { stdio: 'inherit', env }).status ?? 1;
