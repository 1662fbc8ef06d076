// Rust for other targets: rustup's, or, where rustup cannot have the targets, Debian's compiler with the source of the
// standard library.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const { install } = require('./system.js');

/** One version of all three: `rustc` of Debian 12 itself is too old. */
const DEBIAN = ['rustc-web', 'cargo-web', 'rust-web-src'];
const LIBRARY = '/usr/lib/rustlib/src/rust/library';
const PATIENCE_MS = 600_000;

/**
 * Returns what compiles for `targets`: `cargo`, the variables of its environment, and `library`, the source of the standard
 * library if that has to be compiled too. Throws if there is nothing.
 */
exports.rustFor = (targets, { isFromSource = false } = {}) => {
  if (!isFromSource) {
    const { status, error } = spawnSync('rustup', ['target', 'add', ...targets], {
      stdio: 'inherit',
      timeout: PATIENCE_MS,
    });
    if (status === 0) return { cargo: 'cargo', env: {}, library: null };
    console.log(
      `rustup cannot add the targets${error === undefined ? '' : ` (${error.code})`}: the standard library is compiled.`,
    );
  }
  if (!fs.existsSync(LIBRARY)) install(DEBIAN);
  return { cargo: '/usr/bin/cargo', env: { RUSTC: '/usr/bin/rustc', RUSTC_BOOTSTRAP: '1' }, library: LIBRARY };
};
