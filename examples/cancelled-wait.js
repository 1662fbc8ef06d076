// Waits that are given up: by the user, by a time limit, or by whichever comes first. A waiter that gives up leaves the queue,
// and the waiters behind it are served as if it had never waited.

const { Mutex, TimeoutError } = require('sablock');

const outcomeOf = (promise) =>
  promise.then(
    () => 'held',
    (reason) => `given up: ${reason.name ?? reason}`,
  );

const main = async () => {
  const mutex = new Mutex(new SharedArrayBuffer(Mutex.BYTES));
  const holder = await mutex.acquireAsync();

  const user = new AbortController();
  const cancelled = outcomeOf(mutex.lockAsync({ signal: user.signal }));
  const tooLate = outcomeOf(mutex.lockAsync({ signal: AbortSignal.any([user.signal, AbortSignal.timeout(20)]) }));
  const timedOut = mutex.acquireAsync({ timeout: 20 }).catch((error) => error instanceof TimeoutError && error.code);
  const patient = outcomeOf(mutex.lockAsync());

  const outcomes = [await tooLate, await timedOut];
  user.abort('the user went home');
  outcomes.push(await cancelled);
  holder.unlock();
  outcomes.push(await patient);
  mutex.unlock();

  console.log(outcomes.join('\n'));
  const expected = ['given up: TimeoutError', 'ERR_LOCK_TIMEOUT', 'given up: the user went home', 'held'];
  if (outcomes.join() !== expected.join() || mutex.isLocked) process.exitCode = 1;
};

main();
