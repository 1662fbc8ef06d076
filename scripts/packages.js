// The packages that are published: the package itself, and one for each platform with its binary. The manifests are made here, so
// that the one in the repository has no optional dependencies, which `npm ci` could not install before they are published.
// (`napi create-npm-dirs` makes the platforms' manifests, but without the licences, and in the repository.)
//
// npm run pack:local -- DIR writes what a user of this machine installs: the package itself and this platform's binary. Then
// `npm install DIR/*.tgz` in an empty folder needs neither a compiler nor the network.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { collectLicenses } = require('./licenses.js');
const { packCore } = require('./pack-core.js');

const root = path.join(__dirname, '..');
const manifest = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
const { binaryName, packageName, targets } = manifest.napi;

const LIBC = { gnu: 'glibc', musl: 'musl' };

const CPUS = { x86_64: 'x64', aarch64: 'arm64' };
const SYSTEMS = { linux: 'linux', darwin: 'darwin', windows: 'win32' };

/** Every platform with a package, under the names that `napi build` uses. (Its own `parseTriple()` takes a third of a second to load.) */
exports.PLATFORMS = targets.map((triple) => {
  const [processor, , system, abi = null] = triple.split('-');
  const [os, cpu] = [SYSTEMS[system], CPUS[processor]];
  const name = [os, cpu, abi].filter((part) => part !== null).join('-');
  return { name, triple, abi, os, cpu, packageName: `${packageName}-${name}`, binary: `${binaryName}.${name}.node` };
});

exports.VERSION = manifest.version;

/** The fields that all manifests share. Provenance needs the repository, which the publishing workflow knows. */
function common() {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name } = process.env;
  const { version, license, engines } = manifest;
  const repository = name === undefined ? manifest.repository : { type: 'git', url: `git+${server}/${name}.git` };
  return { version, license, engines, repository };
}

/** The fields that still say where this will be, and not where it is. */
exports.placeholders = ['homepage', 'bugs', 'repository'].filter((field) =>
  JSON.stringify(manifest[field]).includes('/OWNER/'),
);

/** Writes the folder of the main package, with the platforms as optional dependencies, and packs it. Returns the tarball. */
exports.packMain = (staging, destination, platforms) => {
  const folder = path.join(staging, 'main');
  for (const file of [...manifest.files.filter((name) => !name.startsWith('!')), 'README.md', 'LICENSE']) {
    fs.cpSync(path.join(root, file), path.join(folder, file), { recursive: true });
  }
  packCore(folder);
  const guides = fs.readdirSync(path.join(folder, GUIDES)).filter((file) => file.endsWith('.md'));
  for (const file of ['README.md', ...guides.map((guide) => path.posix.join(GUIDES, guide))]) {
    fs.writeFileSync(path.join(folder, file), toPacked(file));
  }
  const { devDependencies, scripts, napi, ...published } = manifest;
  const optionalDependencies = Object.fromEntries(
    platforms.map((platform) => [platform.packageName, manifest.version]),
  );
  writeManifest(folder, { ...published, ...common(), optionalDependencies });
  return pack(folder, destination);
};

/** A link of Markdown, or a picture: what it shows, in one paragraph, and the file that it leads to. */
const LINK = /!?\[((?:[^\]\n]|\](?!\()|\n(?!\n))*)\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g;
/** A program in a document, which has brackets of its own. */
const CODE = /(^```.*?^```$)/ms;

const GUIDES = 'docs/guides';

/** A document that says, of the files and pictures that are not in the package, where they are. */
function toPacked(document) {
  const packed = [...manifest.files, 'README.md', 'LICENSE'];
  const isPacked = (file) => packed.some((name) => file === name || file.startsWith(`${name}/`));
  const toText = (link, text, file) => {
    if (link.startsWith('!')) return `*(a picture, in the repository: ${text})*`;
    return isPacked(path.posix.join(path.posix.dirname(document), file)) ? link : `${text} (in the repository)`;
  };
  const parts = fs.readFileSync(path.join(root, document), 'utf8').split(CODE);
  return parts.map((part, index) => (index % 2 === 1 ? part : part.replaceAll(LINK, toText))).join('');
}

/** Writes the folder of a platform's package around its binary, and packs it. Returns the tarball. */
exports.packPlatform = (staging, destination, platform, file) => {
  const folder = path.join(staging, platform.name);
  fs.mkdirSync(folder);
  fs.copyFileSync(file, path.join(folder, platform.binary));
  fs.copyFileSync(path.join(root, 'LICENSE'), path.join(folder, 'LICENSE'));
  fs.writeFileSync(path.join(folder, 'THIRD-PARTY-LICENSES'), collectLicenses(platform.triple));
  const text = `The binary of ${manifest.name} for ${platform.triple}, an optional dependency of ${manifest.name}.`;
  fs.writeFileSync(path.join(folder, 'README.md'), `# ${platform.packageName}\n\n${text}\n`);
  writeManifest(folder, {
    name: platform.packageName,
    description: `The binary of ${manifest.name} for ${platform.triple}`,
    ...common(),
    type: 'commonjs',
    main: platform.binary,
    files: [platform.binary, 'THIRD-PARTY-LICENSES'],
    os: [platform.os],
    cpu: [platform.cpu],
    // Yarn leaves packages zipped, and no system loads a library out of a zip.
    preferUnplugged: true,
    ...(platform.abi in LIBC && { libc: [LIBC[platform.abi]] }),
  });
  return pack(folder, destination);
};

function pack(folder, destination) {
  // The destination is passed as a variable: Windows needs a shell to find npm, and a shell would split it at its spaces.
  const options = {
    cwd: folder,
    encoding: 'utf8',
    shell: process.platform === 'win32',
    env: { ...process.env, npm_config_pack_destination: destination },
  };
  return path.join(destination, execFileSync('npm', ['pack', '--silent'], options).trim());
}

function writeManifest(folder, contents) {
  fs.writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(contents, null, 2)}\n`);
}

/** Packs the main package and that of the platform whose binary has been built here. */
exports.packLocal = (directory) => {
  const built = exports.PLATFORMS.filter(({ binary }) => fs.existsSync(path.join(root, binary)));
  if (built.length !== 1) throw new Error(`Expected one binary in ${root}, found ${built.length}. Run npm run build.`);
  const [platform] = built;
  fs.mkdirSync(directory, { recursive: true });
  const staging = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-pack-'));
  try {
    const binding = exports.packPlatform(staging, directory, platform, path.join(root, platform.binary));
    return [exports.packMain(staging, directory, built), binding];
  } finally {
    fs.rmSync(staging, { recursive: true });
  }
};

if (require.main === module) {
  const [directory] = process.argv.slice(2);
  if (directory === undefined) {
    console.error('Usage: npm run pack:local -- DIR');
    process.exit(1);
  }
  const tarballs = exports.packLocal(path.resolve(process.env.INIT_CWD ?? process.cwd(), directory));
  console.log(tarballs.join('\n'));
}
