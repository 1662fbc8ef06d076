// The runtimes that the package is tested on, and how to get them: their binaries are npm packages.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const CACHE = path.join(__dirname, '..', '..', 'target', 'runtimes');
const { platform, arch } = process;
const suffix = platform === 'win32' ? '.exe' : '';

const nodePackage = `node-${platform === 'win32' ? 'win' : platform}-${arch}`;
const bunPackage = `@oven/bun-${platform === 'win32' ? 'windows' : platform}-${arch === 'arm64' ? 'aarch64' : arch}`;
const denoPackage = `@deno/${platform}-${arch}${platform === 'linux' ? '-glibc' : ''}`;

/** Of Node the newest of each line; the others as they were when their lacks were looked at. */
exports.RUNTIMES = [
  ...['20', '22', '24', '26'].map((version) => ({
    name: `node${version}`,
    kind: 'node',
    version,
    package: nodePackage,
    file: `bin/node${suffix}`,
  })),
  { name: 'bun', kind: 'bun', version: '~1.4.0', package: bunPackage, file: `bin/bun${suffix}` },
  { name: 'deno', kind: 'deno', version: '~2.9.0', package: denoPackage, file: `deno${suffix}` },
];

/** Answers the path of the runtime's binary; undefined, and says so, where npm has none for this system. */
exports.install = ({ name, kind, version, package: packageName, file }) => {
  if (kind === 'node' && process.versions.node.split('.')[0] === version) return process.execPath;
  const folder = path.join(CACHE, name);
  fs.mkdirSync(folder, { recursive: true });
  const options = ['--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--prefer-offline'];
  const { status, stderr } = spawnSync(
    'npm',
    ['install', ...options, '--prefix', folder, `${packageName}@${version}`],
    { cwd: folder, encoding: 'utf8', shell: platform === 'win32' },
  );
  if (status === 0) return path.join(folder, 'node_modules', packageName, file);
  // On the system that CI uses, all of them are there: none may go missing unnoticed.
  if (/\b(E404|ETARGET|EBADPLATFORM)\b/.test(stderr) && `${platform}-${arch}` !== 'linux-x64') {
    console.log(`${name}: skipped, since npm has no ${packageName}@${version}`);
    return undefined;
  }
  throw new Error(`${packageName}@${version} could not be installed:\n${stderr}`);
};
