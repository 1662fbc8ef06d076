// Installs of the package in temporary folders: its JavaScript, and whatever stands in for a binary.

const fs = require('node:fs');
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

/** An install of the JavaScript alone, as it is packed. */
exports.installJs = (folder) => copyPacked(ROOT, folder);

/** A platform's package in the folder's node_modules; `files` from names to contents, the first of them its main. */
exports.installPackage = (folder, platform, files, main = Object.keys(files)[0]) => {
  const home = path.join(folder, 'node_modules', '@sablock', `binding-${platform}`);
  fs.mkdirSync(home, { recursive: true });
  fs.writeFileSync(path.join(home, 'package.json'), JSON.stringify({ name: `@sablock/binding-${platform}`, main }));
  for (const [name, contents] of Object.entries(files)) fs.writeFileSync(path.join(home, name), contents);
  return home;
};
