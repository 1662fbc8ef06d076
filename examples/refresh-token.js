// Five processes wake at once, and the token that they share in a file has expired. One of them refreshes it; the others wait, and
// use what it wrote. The first one that tries is killed in the middle (`kill -9`): the next one learns of it, looks after the
// file, and does it.

const { fork } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { LockManager } = require('sablock');

const PROCESSES = 5;

/** Reads the token; half a token is none. */
const read = (file) => {
  try {
    const { token, expires } = JSON.parse(fs.readFileSync(file, 'utf8'));
    return expires > Date.now() ? token : null;
  } catch {
    return null;
  }
};

/** Takes a while, as servers do, and writes in two steps: between them the file is not whole. */
async function refresh(file) {
  const text = JSON.stringify({ token: `token of process ${process.pid}`, expires: Date.now() + 60_000 });
  fs.writeFileSync(file, text.slice(0, 10));
  process.send('refreshing');
  await sleep(200);
  fs.writeFileSync(file, text);
}

async function useToken(directory) {
  const file = path.join(directory, 'token.json');
  // Outside of this example `new LockManager({ scope: 'machine' })` needs no directory.
  const locks = new LockManager({ directory: path.join(directory, 'locks') });
  const token = await locks.request('token', async (lock) => {
    if (lock.abandoned) {
      // The one that had it before was killed, perhaps while it wrote.
      if (read(file) === null) fs.rmSync(file, { force: true });
      lock.markConsistent();
    }
    if (read(file) === null) await refresh(file);
    return read(file);
  });
  process.send({ token });
  process.disconnect();
}

async function main() {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-example-'));
  fs.writeFileSync(path.join(directory, 'token.json'), JSON.stringify({ token: 'an old one', expires: 0 }));
  let refreshes = 0;
  let victim;
  const tokens = [];
  const start = () => {
    const child = fork(__filename, [directory], { execArgv: ['--no-warnings'] });
    child.on('message', (message) => {
      if (message !== 'refreshing') tokens.push(message.token);
      else if (++refreshes === 1) {
        victim = child;
        child.kill('SIGKILL');
      }
    });
    return new Promise((resolve) => child.once('exit', resolve));
  };
  await Promise.all(Array.from({ length: PROCESSES }, start));
  fs.rmSync(directory, { recursive: true });

  console.log(`${refreshes} processes began to refresh the token, and the first one was killed.`);
  console.log(`${tokens.length} processes got a token, all the same: ${new Set(tokens).size === 1}`);
  const isRight =
    refreshes === 2 && tokens.length === PROCESSES - 1 && new Set(tokens).size === 1 && tokens[0] !== null;
  if (!isRight || tokens[0].endsWith(` ${victim.pid}`)) process.exitCode = 1;
}

if (process.argv[2] === undefined) main();
else useToken(process.argv[2]);
