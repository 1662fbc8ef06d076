// `npm version` runs this: it copies the version from package.json to the crate and to the loader. (`napi version` sets the
// platforms' manifests only, which scripts/packages.js makes.)

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const root = path.join(__dirname, '..');
const { version } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));

replace('Cargo.toml', /^version = ".*"/m, `version = "${version}"`);
replace('Cargo.lock', /(name = "sablock"\nversion = )".*"/, `$1"${version}"`);
replace('lib/load/binary.js', /VERSION = '.*'/, `VERSION = '${version}'`);

function replace(file, pattern, text) {
  const place = path.join(root, file);
  const before = fs.readFileSync(place, 'utf8');
  if (!pattern.test(before)) throw new Error(`${file} has no version`);
  fs.writeFileSync(place, before.replace(pattern, text));
  execFileSync('git', ['add', file], { cwd: root });
}
