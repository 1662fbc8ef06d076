// A listener of 'newListener' throws while the lock worker is started. Prints why the first request failed, and the next one.
const { LockManager } = require('../..');
const { redis } = require('../../lib/stores/redis.js');

const refuse = (event) => {
  if (event === 'exit') throw new Error('no listener');
};

async function main() {
  const manager = new LockManager({ store: redis('redis://127.0.0.1:1') });
  const ask = () => manager.acquireAsync('name').catch(({ message, cause }) => `${message} ${cause?.message}`);
  process.on('newListener', refuse);
  console.log(await ask());
  process.off('newListener', refuse);
  console.log(await ask());
  process.exit();
}

main();
