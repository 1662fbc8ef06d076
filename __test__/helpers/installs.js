// Installs of the package in temporary folders: its JavaScript, and whatever stands in for a binary.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { copyPacked } = require('../../scripts/pack-core.js');

const ROOT = path.join(__dirname, '..', '..');
const OWN = `sablock.${process.platform}-${process.arch}`;
/** There may be some for other systems beside it. */
const BINARY = fs.readdirSync(ROOT).find((file) => file.startsWith(OWN) && file.endsWith('.node'));

/** This system's binary, as the build wrote it. */
exports.BINARY = path.join(ROOT, BINARY);

/** The name of this system in the names of packages: linux-x64-gnu. */
exports.PLATFORM = BINARY.slice('sablock.'.length, -'.node'.length);

/** The files of the package's JavaScript, as it is packed: of each its name and its contents. */
function packedFiles() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-packed-'));
  try {
    copyPacked(ROOT, folder);
    const entries = fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const files = entries.map((entry) => path.join(entry.parentPath ?? entry.path, entry.name));
    return files.map((file) => [path.relative(folder, file), fs.readFileSync(file)]);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

let packed;
/** An install of the JavaScript alone. It is packed once. */
exports.installJs = (folder) => {
  packed ??= packedFiles();
  for (const [name, contents] of packed) {
    const file = path.join(folder, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, contents);
  }
};

/** A platform's package in the folder's node_modules; `files` from names to contents, the first of them its main. */
exports.installPackage = (folder, platform, files, main = Object.keys(files)[0]) => {
  const home = path.join(folder, 'node_modules', '@sablock', `binding-${platform}`);
  fs.mkdirSync(home, { recursive: true });
  fs.writeFileSync(path.join(home, 'package.json'), JSON.stringify({ name: `@sablock/binding-${platform}`, main }));
  for (const [name, contents] of Object.entries(files)) fs.writeFileSync(path.join(home, name), contents);
  return home;
};
