// Broken on purpose: a function that holds a lock awaits another one, which wants the same lock. It hangs for ever.
//
//     node --require sablock/doctor nested.js

const { Mutex } = require('sablock');

const session = new Mutex(new SharedArrayBuffer(4), 0, { name: 'session' });
let token = null;

async function refreshToken() {
  await session.executeLocked(() => {
    token = 'new';
  });
}

async function getUser() {
  return session.executeLocked(async () => {
    if (token === null) await refreshToken();
    return `user of token ${token}`;
  });
}

getUser().then(console.log);
