// npm run test:stores: the tests of locks among machines on real servers, which they start on loopback, those of Redis on Valkey too,
// and the examples of such locks. Installs the servers that are missing if it can (Debian's packages, as root), and says in its last lines what it left out.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const servers = () => {
  const file = require.resolve('../__test__/helpers/servers.js');
  delete require.cache[file];
  const { hasEtcd, hasPgBouncer, hasPostgres, hasRedis, valkeyServer } = require(file);
  return {
    postgresql: hasPostgres,
    pgbouncer: hasPgBouncer,
    'redis-server': hasRedis,
    'valkey-server': valkeyServer !== null,
    'etcd-server': hasEtcd,
  };
};
const missing = () => Object.entries(servers()).flatMap(([name, isThere]) => (isThere ? [] : [name]));

if (missing().length > 0 && process.getuid?.() === 0) {
  const run = (...args) => spawnSync('apt-get', args, { stdio: 'inherit', timeout: 300_000 });
  run('update');
  // One by one: what can be had is used.
  for (const name of missing()) run('install', '-y', '--no-install-recommends', name);
}

const folder = path.join(__dirname, '..', '__test__', 'stores');
const isTest = (file) => file.endsWith('.test.js');
const files = fs
  .readdirSync(folder)
  .filter(isTest)
  .map((file) => path.join(folder, file));
// They wait more than they work.
const test = (these, env) =>
  spawnSync(process.execPath, ['--test', '--test-concurrency=2', ...these], {
    stdio: 'inherit',
    env: { ...process.env, SABLOCK_STORE_SECONDS: process.env.SABLOCK_STORE_SECONDS ?? '10', ...env },
  }).status;
const status = test(files);
const { valkeyServer } = require('../__test__/helpers/servers.js');
const ofValkey =
  valkeyServer === null ? 0 : test([path.join(folder, 'redis.test.js')], { SABLOCK_REDIS_SERVER: valkeyServer });
const examples = ['nightly-leader.js', 'fenced-migration.js'];
const runner = path.join(__dirname, '..', 'examples', 'run.js');
const { status: ofExamples } = spawnSync(process.execPath, [runner, ...examples], { stdio: 'inherit' });
const left = missing();
console.log(
  left.length === 0 ? 'No server was left out.' : `Left out, since it could not be installed: ${left.join(', ')}.`,
);
process.exitCode = (status ?? 1) || (ofValkey ?? 1) || (ofExamples ?? 1);
