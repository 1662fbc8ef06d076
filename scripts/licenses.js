// The licences of the software in a binary: `node scripts/licenses.js [TARGET]` prints them, and fails for one that is not
// in the list below. The platform's package has them as THIRD-PARTY-LICENSES.
//
// cargo-about (0.9) was tried in its place: 3:45 minutes to install, it lists procedural macros and what these depend on, which
// are in no binary, leaves the standard library out, and gives a crate without a licence file a text without its authors' names.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const root = path.join(__dirname, '..');

/** The licences that allow distribution in a binary under MIT, the preferred ones first. */
const ALLOWED = ['MIT', 'ISC', 'BSD-3-Clause', 'BSD-2-Clause', 'Zlib', 'Unicode-3.0', 'Apache-2.0', 'Unlicense'];

const LICENSE_FILE = /^(licen[cs]e|copying|notice)/i;

const mit = (holders) => `Copyright (c) ${holders}

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy,
modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE,
ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;

const STANDARD_LIBRARY = {
  name: 'The Rust standard library',
  license: 'MIT',
  text: mit('The Rust Project contributors'),
};

const cargo = (...args) =>
  execFileSync('cargo', args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'inherit'],
  });

/** The crates that are linked into the binary for this target. Macros and build scripts are not. */
function linkedCrates(triple) {
  const edges = ['--package', 'sablock', '--edges', 'normal,no-proc-macro', '--target', triple];
  const tree = cargo('tree', ...edges, '--prefix', 'none', '--format', '{p}', '--locked');
  const names = new Set(tree.split('\n').map((line) => line.split(' ').slice(0, 2).join('@').replace('@v', '@')));
  const { packages } = JSON.parse(cargo('metadata', '--format-version', '1', '--filter-platform', triple, '--locked'));
  return packages.filter(({ name, version }) => name !== 'sablock' && names.has(`${name}@${version}`));
}

/** Chooses one licence of a licence expression. */
function choose({ name, license }) {
  const choices = (license ?? '').split(/ OR |\//);
  const chosen = ALLOWED.find((allowed) => choices.includes(allowed));
  if (chosen === undefined)
    throw new Error(`The licence of ${name} is not in the list of scripts/licenses.js: ${license}`);
  return chosen;
}

function textOf({ name, authors, manifest_path }, license) {
  const folder = path.dirname(manifest_path);
  const files = fs.readdirSync(folder).filter((file) => LICENSE_FILE.test(file));
  const file = files.find((candidate) => candidate.toUpperCase().includes(license.toUpperCase())) ?? files[0];
  if (file !== undefined) return fs.readFileSync(path.join(folder, file), 'utf8').replaceAll('\r', '').trim();
  if (license === 'MIT') return mit(authors.length > 0 ? authors.join(', ') : `the authors of ${name}`);
  throw new Error(`${name} has no file with its licence, ${license}`);
}

exports.collectLicenses = (triple) => {
  const crates = linkedCrates(triple).map((crate) => {
    const license = choose(crate);
    return { name: `${crate.name} ${crate.version}`, license, text: textOf(crate, license) };
  });
  const byText = groupBy([STANDARD_LIBRARY, ...crates], ({ text }) => text);
  const sections = [...byText].map(
    ([text, group]) => `${group.map(({ name, license }) => `${name} (${license})`).join('\n')}\n\n${text}\n`,
  );
  return [`The binary of sablock for ${triple} contains this software.\n`, ...sections].join(`\n${'-'.repeat(80)}\n\n`);
};

function groupBy(values, keyOf) {
  const groups = new Map();
  for (const value of values) groups.set(keyOf(value), [...(groups.get(keyOf(value)) ?? []), value]);
  return groups;
}

if (require.main === module) {
  const [triple = /host: (.*)/.exec(execFileSync('rustc', ['-vV'], { encoding: 'utf8' }))[1]] = process.argv.slice(2);
  console.log(exports.collectLicenses(triple));
}
