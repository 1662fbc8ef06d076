// Real servers for the tests of stores: on loopback, each in a folder of its own that goes with it. What is not installed is null.

const { execFileSync, spawn, spawnSync } = require('node:child_process');
const dgram = require('node:dgram');
const { once } = require('node:events');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');

/** Below what Linux, macOS and Windows give to connections. */
const FIRST_PORT = 20_000;
const PORTS = 12_000;

/** The program, where packages put it. Wine shows those of the system below, which cannot be started from there. */
function find(name, folders = []) {
  if (process.platform === 'win32') return null;
  const all = [...folders, ...(process.env.PATH ?? '').split(path.delimiter), '/usr/sbin'];
  return all.map((folder) => path.join(folder, name)).find((file) => fs.existsSync(file)) ?? null;
}

function postgresFolders() {
  const root = '/usr/lib/postgresql';
  const versions = fs.existsSync(root) ? fs.readdirSync(root) : [];
  return versions.sort((one, other) => Number(other) - Number(one)).map((version) => path.join(root, version, 'bin'));
}

/** The bytes that the servers of several tests take. */
const ROOM = 4 * 2 ** 30;

function hasRoom(folder) {
  try {
    fs.accessSync(folder, fs.constants.W_OK);
    const { bavail, bsize } = fs.statfsSync(folder);
    return bavail * bsize > ROOM;
  } catch {
    return false;
  }
}

/** In memory, where there is room: a server answers after its disk does, which takes seconds where others keep that busy. */
function makeHome(name) {
  const root = hasRoom('/dev/shm') ? '/dev/shm' : os.tmpdir();
  return fs.mkdtempSync(path.join(root, `sablock-${name}-`));
}

/** PostgreSQL and MariaDB refuse to run as root: the user that their packages have made. */
function unprivileged(user = 'postgres') {
  if (process.getuid?.() !== 0) return {};
  const id = (flag) => Number(execFileSync('id', [flag, user], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/**
 * A port for a server, which may be restarted. No connection takes one of these for its own end, as it does those that the system
 * gives to a server that asks for any; and as long as this process runs, no other one that asks here does, since it keeps the UDP
 * port of the same number.
 */
async function freePort() {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    const claim = dgram.createSocket('udp4').unref();
    const probe = net.createServer();
    try {
      await once(claim.bind(port, '127.0.0.1'), 'listening');
      await once(probe.listen(port, '127.0.0.1'), 'listening');
    } catch {
      claim.close();
      continue;
    }
    probe.close();
    await once(probe, 'close');
    return port;
  }
}

exports.freePort = freePort;

/** A child process that ends with the test's process, however that ends. */
function run(file, args, options) {
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  child.output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (child.output += data));
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  child.ended = new Promise((resolve) => {
    child.once('exit', () => {
      process.off('exit', kill);
      resolve();
    });
  });
  return child;
}

/** Until `isReady()` is true, or the child has ended. */
async function until(child, isReady) {
  let hasEnded = false;
  child.ended.then(() => {
    hasEnded = true;
  });
  for (;;) {
    if (await isReady()) return;
    if (hasEnded) throw new Error(`The server has ended:\n${child.output}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/**
 * A connection that is made when it is first used, and again when it has ended: `use(act)` returns what `act(connection)` does, `end()`
 * ends it.
 */
function keptConnection(connect, isOpen, end) {
  let kept;
  const forget = () => {
    kept?.then(end, () => {});
    kept = undefined;
  };
  const use = async (act) => {
    for (;;) {
      kept ??= connect();
      const mine = kept;
      let connection;
      try {
        connection = await mine;
        return await act(connection);
      } catch (error) {
        if (connection !== undefined && isOpen(connection)) throw error;
        if (kept === mine) forget();
        // Nobody knew that it had ended.
        if (connection === undefined) throw error;
      }
    }
  };
  return { use, end: forget };
}

/** The ends of a server: killed, or stopped for good, with its folder; `before()` is called first. */
function endsOf(childOf, home, before = () => {}) {
  const kill = async () => {
    before();
    const child = childOf();
    child.kill('SIGKILL');
    await child.ended;
  };
  const stop = async () => {
    await kill();
    fs.rmSync(home, { recursive: true, force: true });
  };
  return { kill, stop };
}

/** Copies a folder with its rights, which Node.js 22 does not copy: PostgreSQL reads no data that others may read. */
function copyFolder(from, to) {
  fs.cpSync(from, to, { recursive: true });
  fs.chmodSync(to, fs.statSync(from).mode);
}

/**
 * Puts into `home` the data of a server that nobody has used yet: `make(home, data)` makes them, once for each checkout, which takes
 * seconds, and they are copied. Whoever makes them at the same time as another throws its own away.
 */
function copyFreshData(name, home, { uid, gid }, make) {
  const made = path.join(__dirname, '..', '..', 'target', name);
  const data = path.join(home, 'data');
  if (fs.existsSync(made)) {
    copyFolder(made, data);
    if (uid !== undefined) execFileSync('chown', ['-R', `${uid}:${gid}`, data]);
    return data;
  }
  make(data);
  fs.mkdirSync(path.dirname(made), { recursive: true });
  const own = `${made}-${process.pid}`;
  copyFolder(data, own);
  try {
    fs.renameSync(own, made);
  } catch {
    fs.rmSync(own, { recursive: true, force: true });
  }
  return data;
}

exports.hasPostgres = find('postgres', postgresFolders()) !== null;
exports.hasPgBouncer = find('pgbouncer') !== null;

/**
 * `{ url, port, query(sql), ask(sql), kill(), start(), stop() }`. `ask` is for questions that come again and again: its connection is
 * kept, while `query` makes one for each.
 */
exports.startPostgres = async (settings = {}) => {
  const folders = postgresFolders();
  const user = unprivileged();
  const home = makeHome('postgres');
  if (user.uid !== undefined) fs.chownSync(home, user.uid, user.gid);
  const data = copyFreshData('postgres-data', home, user, (made) => {
    const args = ['-D', made, '-U', 'sablock', '--auth=trust', '--no-sync'];
    execFileSync(find('initdb', folders), args, { ...user, cwd: home, stdio: 'ignore' });
  });
  const port = await freePort();
  const all = { port, listen_addresses: '127.0.0.1', unix_socket_directories: home, ...settings };
  const args = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const { Client } = require('pg');
  const url = `postgres://sablock@127.0.0.1:${port}/postgres`;
  const connect = async () => {
    const client = new Client({ connectionString: url });
    client.on('error', () => {});
    client.once('end', () => {
      client.isOver = true;
    });
    await client.connect();
    return client;
  };
  const asking = keptConnection(
    connect,
    (client) => !client.isOver,
    (client) => client.end().catch(() => {}),
  );
  const query = async (...sql) => {
    const client = await connect();
    try {
      return (await client.query(...sql)).rows;
    } finally {
      await client.end().catch(() => {});
    }
  };
  let child;
  const server = {
    url,
    port,
    query,
    ask: async (...sql) => (await asking.use((client) => client.query(...sql))).rows,
    async start() {
      child = run(find('postgres', folders), ['-D', data, ...args], { ...user, cwd: home });
      await until(child, () =>
        query('select 1').then(
          () => true,
          () => false,
        ),
      );
    },
    /** As a crash, of all of its processes. */
    async kill() {
      asking.end();
      child.kill('SIGQUIT');
      await child.ended;
    },
    /** Its own processes go with it. */
    async stop() {
      asking.end();
      child.kill('SIGINT');
      await child.ended;
      fs.rmSync(home, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;
};

exports.valkeyServer = find('valkey-server');
/** Redis, or what stands for it. */
const redisServer = process.env.SABLOCK_REDIS_SERVER ?? find('redis-server') ?? exports.valkeyServer;
exports.hasRedis = redisServer !== null;

/**
 * `{ url, port, run(...args), ask(...args), kill(), start(), stop() }`. `ask` is for commands that come again and again, which may also
 * run twice: its connection is kept, while `run` makes one for each.
 */
exports.startRedis = async (args = []) => {
  const home = makeHome('redis');
  const port = await freePort();
  let child;
  const connect = async () => {
    const { createClient } = require('redis');
    const client = createClient({ url: server.url, socket: { reconnectStrategy: false } });
    client.on('error', () => {});
    await client.connect();
    return client;
  };
  const asking = keptConnection(
    connect,
    (client) => client.isReady,
    (client) => client.isOpen && client.destroy(),
  );
  const server = {
    url: `redis://127.0.0.1:${port}`,
    port,
    get pid() {
      return child.pid;
    },
    ask: (...command) => asking.use((client) => client.sendCommand(command)),
    async run(...command) {
      const client = await connect();
      try {
        return await client.sendCommand(command);
      } finally {
        client.destroy();
      }
    },
    async start() {
      const fixed = ['--port', String(port), '--bind', '127.0.0.1', '--dir', home, '--save', '', '--appendonly', 'no'];
      child = run(redisServer, [...fixed, ...args], { cwd: home });
      await until(child, () => accepts(port));
    },
    ...endsOf(() => child, home, asking.end),
  };
  await server.start();
  return server;
};

const mariadb = find('mariadbd') ?? find('mysqld');
const mariadbInstaller = find('mariadb-install-db');
exports.hasMysql = mariadb !== null && mariadbInstaller !== null;

/** Small, and without what a system has little of. Each has a `tmpdir` of its own besides: one that begins empties it. */
const MARIADB = ['--innodb-log-file-size=4M', '--innodb-buffer-pool-size=8M', '--innodb-use-native-aio=0'];

/** A MariaDB: `{ url, port, query(sql, values), kill(), start(), stop() }`. */
exports.startMysql = async (settings = {}) => {
  const user = unprivileged('mysql');
  const home = makeHome('mysql');
  const port = await freePort();
  const tmpdir = path.join(home, 'tmp');
  fs.mkdirSync(tmpdir);
  if (user.uid !== undefined) for (const folder of [home, tmpdir]) fs.chownSync(folder, user.uid, user.gid);
  const data = copyFreshData('mariadb-data', home, user, (made) => {
    const args = [
      '--auth-root-authentication-method=normal',
      '--skip-test-db',
      `--datadir=${made}`,
      `--tmpdir=${home}`,
    ];
    const options = { ...user, cwd: home, encoding: 'utf8' };
    const { status, stdout, stderr } = spawnSync(mariadbInstaller, ['--no-defaults', ...args, ...MARIADB], options);
    if (status !== 0) throw new Error(`${mariadbInstaller} ended with ${status}:\n${stdout}${stderr}`);
  });
  const all = {
    datadir: data,
    tmpdir,
    port,
    'bind-address': '127.0.0.1',
    socket: path.join(home, 'socket'),
    'pid-file': path.join(home, 'pid'),
    'innodb-flush-log-at-trx-commit': 0,
    ...settings,
  };
  const args = ['--no-defaults', ...MARIADB, ...Object.entries(all).map(([name, value]) => `--${name}=${value}`)];
  const url = `mysql://root@127.0.0.1:${port}/mysql`;
  const query = async (...sql) => {
    const client = await require('mysql2/promise').createConnection(url);
    client.on('error', () => {});
    try {
      return (await client.query(...sql))[0];
    } finally {
      client.destroy();
    }
  };
  let child;
  let begun = 0;
  const server = {
    url,
    port,
    query,
    get pid() {
      return child.pid;
    },
    async start() {
      // One that has begun in the second of the one before gives its numbers of UUID_SHORT() again.
      while (Math.floor(Date.now() / 1000) === begun) await new Promise((resolve) => setTimeout(resolve, 50));
      child = run(mariadb, args, { ...user, cwd: home });
      await until(child, () =>
        query('select 1').then(
          () => true,
          () => false,
        ),
      );
      begun = Math.floor(Date.now() / 1000);
    },
    ...endsOf(() => child, home),
  };
  await server.start();
  return server;
};

exports.hasOpenssl = find('openssl') !== null;

/** A certificate of this machine, which signs itself, in that folder: its file, and that of its key. */
exports.makeCertificate = (folder) => {
  const [key, certificate] = ['key.pem', 'certificate.pem'].map((name) => path.join(folder, name));
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const files = ['-keyout', key, '-out', certificate];
  execFileSync(find('openssl'), ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...names, ...files], {
    stdio: 'ignore',
  });
  return { key, certificate };
};

exports.hasEtcd = find('etcd') !== null;

/** `{ url, pid, call(path, body, token), kill(), start(), stop() }`. `more(port)` returns further settings, or a promise of them. */
exports.startEtcd = async (more = () => ({})) => {
  const home = makeHome('etcd');
  const [port, peer] = [await freePort(), await freePort()];
  const [url, peerUrl] = [port, peer].map((each) => `http://127.0.0.1:${each}`);
  const settings = {
    'data-dir': path.join(home, 'data'),
    'listen-client-urls': url,
    'advertise-client-urls': url,
    'listen-peer-urls': peerUrl,
    'initial-advertise-peer-urls': peerUrl,
    'initial-cluster': `default=${peerUrl}`,
    ...(await more(port)),
  };
  let child;
  const server = {
    url,
    get pid() {
      return child.pid;
    },
    async call(what, body, token) {
      const headers = token === undefined ? {} : { authorization: token };
      const response = await fetch(`${url}/v3/${what}`, { method: 'POST', headers, body: JSON.stringify(body) });
      if (!response.ok) throw new Error(await response.text());
      return response.json();
    },
    async start() {
      const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
      child = run(find('etcd'), args, { cwd: home });
      await until(child, () =>
        server.call('kv/range', { key: Buffer.from('any').toString('base64') }).then(
          () => true,
          () => false,
        ),
      );
    },
    ...endsOf(() => child, home),
  };
  await server.start();
  return server;
};

/** PgBouncer before a PostgreSQL: `{ url, stop() }`. */
exports.startPgBouncer = async (target, mode) => {
  const user = unprivileged();
  const home = makeHome('pgbouncer');
  const port = await freePort();
  const file = path.join(home, 'pgbouncer.ini');
  fs.writeFileSync(path.join(home, 'users'), '"sablock" ""\n');
  fs.writeFileSync(
    file,
    `[databases]\npostgres = host=127.0.0.1 port=${target} user=sablock\n[pgbouncer]\nlisten_addr = 127.0.0.1\n` +
      `listen_port = ${port}\nauth_type = any\npool_mode = ${mode}\nunix_socket_dir =\nmax_client_conn = 100\n` +
      'ignore_startup_parameters = extra_float_digits\n',
  );
  if (user.uid !== undefined)
    for (const name of ['', 'users', 'pgbouncer.ini']) fs.chownSync(path.join(home, name), user.uid, user.gid);
  const child = run(find('pgbouncer'), [file], { ...user, cwd: home });
  await until(child, () => accepts(port));
  return {
    url: `postgres://sablock@127.0.0.1:${port}/postgres`,
    async stop() {
      child.kill('SIGKILL');
      await child.ended;
      fs.rmSync(home, { recursive: true, force: true });
    },
  };
};
