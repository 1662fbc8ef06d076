// npm run test:weather [-- --seed 7 --shard 0/3]: what all stores do alike, and the cases of the Web Locks API, through a hostile
// network (`__test__/helpers/weather.js`): delays that change, messages in pieces, pushes that are lost or come twice. What is not
// installed is skipped; `npm run test:stores` installs it.

const { spawnSync } = require('node:child_process');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { nodeTest } = require('./node-test.js');
const { SHARD, ofShard } = require('./shard.js');

const FILES = ['redis', 'etcd', 'mysql', 'postgres', 'postgres-waits', 'postgres-sessions', 'web-locks'];

const anySeed = String(Date.now() % 2 ** 31);
const { values } = parseArgs({ options: { seed: { type: 'string', default: anySeed }, shard: SHARD } });
const files = ofShard(FILES, values.shard).map((name) => path.join('__test__', 'stores', `${name}.test.js`));
const { status } = spawnSync(process.execPath, nodeTest(files), {
  cwd: path.join(__dirname, '..'),
  stdio: 'inherit',
  env: { ...process.env, SABLOCK_WEATHER: values.seed },
});
console.log(`The weather's seed: ${values.seed}`);
process.exitCode = status ?? 1;
