// npm run test:stores [-- --install]: the tests of locks among machines on real servers, which they start on loopback, those of Redis
// on Valkey too, and the examples of such locks. Installs the servers that are missing if it can (Debian's packages, as root), and
// says in its last lines what it left out. `--install` does no more than that, without Valkey: then `npm test` and `npm run examples`
// have the servers that they need. It works before `npm ci`.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { nodeTest } = require('./node-test.js');

const { install: isOnlyInstalling } = parseArgs({ options: { install: { type: 'boolean', default: false } } }).values;

/** Finds what is installed by now. */
const look = () => {
  const file = require.resolve('../__test__/helpers/servers.js');
  delete require.cache[file];
  return require(file);
};
const servers = () => {
  const { hasEtcd, hasMysql, hasPgBouncer, hasPostgres, hasRedis, valkeyServer } = look();
  return {
    postgresql: hasPostgres,
    pgbouncer: hasPgBouncer,
    'mariadb-server': hasMysql,
    'redis-server': hasRedis,
    ...(isOnlyInstalling ? {} : { 'valkey-server': valkeyServer !== null }),
    'etcd-server': hasEtcd,
  };
};
const missing = () => Object.entries(servers()).flatMap(([name, isThere]) => (isThere ? [] : [name]));

if (missing().length > 0 && process.getuid?.() === 0) {
  const run = (...args) => spawnSync('apt-get', args, { stdio: 'inherit', timeout: 300_000 });
  run('update');
  // One by one: what can be had is used.
  for (const name of missing()) run('install', '-y', '--no-install-recommends', name);
  if (missing().includes('valkey-server')) unpackValkey();
}

/** From where this machine has the packages of its release; undefined if apt does not say. */
function mirrorOf(release) {
  const format = '$(CREATED_BY) $(CODENAME) $(COMPONENT) $(REPO_URI)';
  const { stdout } = spawnSync('apt-get', ['indextargets', '--format', format], { encoding: 'utf8' });
  const wanted = `Packages ${release} main `;
  const line = (stdout ?? '').split('\n').find((target) => target.startsWith(wanted));
  return line?.slice(wanted.length);
}

/** Debian 12 has Valkey among its backports: it is unpacked into a folder of the build, and not installed. */
function unpackValkey() {
  const [, release] = /^VERSION_CODENAME=(\w+)$/m.exec(fs.readFileSync('/etc/os-release', 'utf8')) ?? [];
  const folder = path.join(__dirname, '..', 'target', 'valkey');
  process.env.PATH += `${path.delimiter}${path.join(folder, 'usr', 'bin')}`;
  if (release === undefined || fs.existsSync(path.join(folder, 'usr', 'bin', 'valkey-server'))) return;
  const mirror = mirrorOf(release);
  if (mirror === undefined) {
    console.log(
      `Valkey cannot be had from the backports: apt's sources do not say where the packages of ${release} are.`,
    );
    return;
  }
  fs.mkdirSync(path.join(folder, 'lists', 'partial'), { recursive: true });
  const sources = path.join(folder, 'sources.list');
  fs.writeFileSync(sources, `deb ${mirror} ${release}-backports main\n`);
  const dirs = {
    'Etc::sourcelist': sources,
    'Etc::sourceparts': '/dev/null',
    'State::lists': path.join(folder, 'lists'),
    Cache: folder,
  };
  const settings = Object.entries(dirs).flatMap(([name, value]) => ['-o', `Dir::${name}=${value}`]);
  const run = (...command) =>
    spawnSync(command[0], command.slice(1), { stdio: 'inherit', cwd: folder, timeout: 300_000 });
  run('apt-get', ...settings, 'update');
  run('apt-get', ...settings, 'download', 'valkey-server', 'valkey-tools');
  for (const name of fs.readdirSync(folder)) if (name.endsWith('.deb')) run('dpkg', '-x', name, '.');
}

/** The status of what fails first; 0 if nothing does. */
function testAll() {
  const folder = path.join(__dirname, '..', '__test__', 'stores');
  const isTest = (file) => file.endsWith('.test.js');
  const files = fs
    .readdirSync(folder)
    .filter(isTest)
    .map((file) => path.join(folder, file));
  // They wait more than they work.
  const test = (these, env) =>
    spawnSync(process.execPath, nodeTest(these), {
      stdio: 'inherit',
      env: { SABLOCK_STORE_SECONDS: '10', ...process.env, ...env },
    }).status;
  const status = test(files);
  const { valkeyServer } = look();
  // One server's refusals are in other words than the other's.
  const ofRedis = files.filter((file) => /^(redis|refusals)/.test(path.basename(file)));
  const ofValkey = valkeyServer === null ? 0 : test(ofRedis, { SABLOCK_REDIS_SERVER: valkeyServer });
  const examples = ['nightly-leader.js', 'fenced-migration.js'];
  const runner = path.join(__dirname, '..', 'examples', 'run.js');
  const { status: ofExamples } = spawnSync(process.execPath, [runner, ...examples], { stdio: 'inherit' });
  return (status ?? 1) || (ofValkey ?? 1) || (ofExamples ?? 1);
}

process.exitCode = isOnlyInstalling ? 0 : testAll();
const left = missing();
console.log(
  left.length === 0 ? 'No server was left out.' : `Left out, since it could not be installed: ${left.join(', ')}.`,
);
