// The core of what the package promises: what each verb comes to, for programs that run it in whatever surroundings.

// The program's own, before anything takes its place.
const { setTimeout } = require('node:timers');

/** Returns what a promise comes to, in a moment. */
const outcomeOf = (promise) =>
  Promise.race([
    Promise.resolve(promise).then(
      (value) => (value === null || typeof value !== 'object' ? String(value) : 'an object'),
      (error) => `${error?.name ?? error}: ${error?.code ?? error?.message}`,
    ),
    new Promise((resolve) => setTimeout(resolve, 10_000, 'pending')),
  ]);

/** Returns what each verb of the package came to, line by line. `newSignal()` makes a controller. */
exports.core = async (S, newSignal) => {
  const seen = [];
  const note = async (what, promise) => seen.push(`${what}: ${await outcomeOf(promise)}`);
  const thrown = (act) => {
    try {
      return String(act());
    } catch (error) {
      return `${error.name}: ${error.code}`;
    }
  };
  const memory = () => new SharedArrayBuffer(64);
  const options = { allowMainThread: true };
  const locks = { Mutex: () => new S.Mutex(memory(), 0, options), read: () => new S.RwLock(memory(), 0, options).read };
  Object.assign(locks, {
    write: () => new S.RwLock(memory(), 0, options).write,
    row: () => new S.LockTable(memory(), 0, 2, options).at(1),
  });

  for (const [name, make] of Object.entries(locks)) {
    for (const given of [undefined, { timeout: 60_000 }, { signal: newSignal().signal }]) {
      const how = `${name}, ${given === undefined ? 'plain' : Object.keys(given)}`;
      const lock = make();
      await note(`${how}: lockAsync`, lock.lockAsync(given));
      lock.unlock();
      await note(
        `${how}: acquireAsync`,
        lock.acquireAsync(given).then((guard) => guard.unlock()),
      );
      await note(
        `${how}: executeLocked`,
        lock.executeLocked(() => 'ran', given),
      );
      // One that waits until it is freed; of two readers none does.
      if (name === 'read') continue;
      lock.tryLock();
      const waits = lock.lockAsync(given);
      lock.unlock();
      await note(`${how}: freed`, waits);
      const guard = outcomeOf(lock.acquireAsync({ timeout: 5 }));
      await note(`${how}: timed out`, guard);
      const controller = newSignal();
      const aborted = lock.lockAsync({ signal: controller.signal });
      controller.abort();
      seen.push(`${how}: aborted: ${(await outcomeOf(aborted)).split(':')[0]}`);
      lock.unlock();
      seen.push(`${how}: held: ${lock.isHeldByThisThread}`);
    }
    seen.push(`${name}: unlock: ${thrown(() => make().unlock())}`);
  }

  const entered = new S.Mutex(memory());
  await note(
    'enter',
    new Promise((resolve) => entered.enter(resolve)).then((token) => token.unlock()),
  );
  const semaphore = new S.Semaphore(memory(), 0, 1, { fair: true });
  await note(
    'execute',
    semaphore.execute(() => 'ran', { signal: newSignal().signal }),
  );
  await note('no permit', new S.Semaphore(memory(), 0, 0).acquireAsync(1, { timeout: 5 }));
  const barrier = new S.Barrier(memory(), 0, 2);
  await note('barrier', Promise.all([barrier.waitAsync(), barrier.waitAsync({ timeout: 60_000 })]));
  await note('barrier broken', barrier.waitAsync({ timeout: 5 }));
  await note('barrier stays broken', barrier.waitAsync());
  const latch = new S.Latch(memory());
  latch.add();
  const opens = latch.waitAsync({ signal: newSignal().signal });
  latch.countDown();
  await note('latch', opens);
  const event = new S.AutoResetEvent(memory());
  await note('event', event.waitAsync({ timeout: 5 }));
  await note(
    'once',
    new S.Once(memory()).run(() => {}, { timeout: 60_000 }),
  );
  const exchanger = new S.Exchanger(memory());
  await note('exchange', Promise.all([exchanger.exchangeAsync(1), exchanger.exchangeAsync(2)]).then(String));
  const condition = new S.Condition(memory());
  const held = new S.Mutex(memory());
  await held.lockAsync();
  const waited = condition.waitForAsync(held, () => true);
  await note('condition', waited);
  await note('condition timed out', condition.waitAsync(held, { timeout: 5 }));
  await note('lockAllAsync', S.lockAllAsync([new S.Mutex(memory()), new S.Mutex(memory())], { timeout: 60_000 }));
  await note('waitAsync', S.waitAsync(new Int32Array(memory()), 0, 0, 5).value);
  for (const given of [{}, { timeout: 60_000 }, { signal: newSignal().signal }]) {
    await note(
      `request, ${Object.keys(given)}`,
      S.locks.request('surrounded', given, () => 'ran'),
    );
    await note(
      `requests, ${Object.keys(given)}`,
      S.locks.request(['surrounded', 'too'], given, () => 'ran'),
    );
  }
  const holds = S.locks.request('kept', () => new Promise((resolve) => setTimeout(resolve, 50)));
  await note(
    'request timed out',
    S.locks.request('kept', { timeout: 5 }, () => 'ran'),
  );
  await note(
    'request freed',
    S.locks.request('kept', { signal: newSignal().signal }, () => 'ran'),
  );
  await holds;
  await note(
    'bad name',
    S.locks.request('-', () => 'ran'),
  );
  seen.push(`no memory: ${thrown(() => new S.Mutex({}))}`, `no offset: ${thrown(() => new S.Mutex(memory(), 3))}`);
  const own = new S.Mutex(memory(), 0, options);
  own.lock();
  seen.push(`deadlock: ${thrown(() => own.lock())}`);
  return seen;
};
