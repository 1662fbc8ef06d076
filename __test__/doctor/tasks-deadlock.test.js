// Deadlocks of awaited tasks of one thread: named as certain within a turn of the loop, and never if nobody awaits.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { about, namedMutexes, sleep, withDoctor } = require('../helpers/doctor.js');
const { watched } = require('../helpers/threads.js');
const { needs } = require('../helpers/runtime.js');
const { DeadlockError, Once, RwLock } = require('../../index.js');

const LONG = { stuckMs: Infinity, longHoldMs: Infinity };
const CHAINS = needs('async stacks');

/** Two turns of the loop: the doctor looks in the first one after a wait has begun. */
const turns = async () => {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
};

const names = ({ waits }) => waits.map(({ lock }) => lock.name).sort();

/** A case that is named as certain: `body` starts what could never end, and returns the locks of the cycle. */
const certain = (title, body) =>
  test(
    title,
    CHAINS,
    watched(() =>
      withDoctor({ ...LONG, throwOnDeadlock: true }, async (_, messages) => {
        const { locks, ends } = body();
        // One of them gives up, so that the others come through.
        const outcomes = await Promise.allSettled(ends);
        assert.equal(outcomes.filter(({ reason }) => reason instanceof DeadlockError).length, 1);
        assert.deepEqual(
          messages.map(({ certainty }) => certainty),
          ['certain'],
        );
        assert.deepEqual(names(messages[0]), locks.map(({ name }) => name).sort());
      }),
    ),
  );

certain('executeLocked() inside executeLocked() of the same mutex', () => {
  const [a] = namedMutexes(1);
  return { locks: [a], ends: [a.executeLocked(async () => a.executeLocked(() => {}))] };
});

certain('a wait after a timer, by a function that is awaited', () => {
  const [a] = namedMutexes(1);
  const inner = async () => {
    await sleep(1);
    await a.executeLocked(() => {});
  };
  const end = a.executeLocked(async () => {
    await sleep(1);
    await inner();
  });
  return { locks: [a], ends: [end] };
});

certain('a wait in then()', () => {
  const [a] = namedMutexes(1);
  const end = a.executeLocked(() =>
    sleep(1)
      .then(() => a.executeLocked(() => {}))
      .then(() => 1)
      .finally(() => {}),
  );
  return { locks: [a], ends: [end] };
});

certain('a wait that is awaited later than it began', () => {
  const [a] = namedMutexes(1);
  const end = a.executeLocked(async () => {
    const inner = a.executeLocked(() => {});
    await sleep(5);
    await inner;
  });
  return { locks: [a], ends: [end] };
});

certain('lockAsync() inside executeLocked()', () => {
  const [a] = namedMutexes(1);
  return { locks: [a], ends: [a.executeLocked(async () => a.lockAsync())] };
});

certain('a wait through another lock that is free', () => {
  const [a, b] = namedMutexes(2);
  return { locks: [a], ends: [a.executeLocked(() => b.executeLocked(() => a.executeLocked(() => {})))] };
});

certain('a writer inside a reader', () => {
  const lock = new RwLock(new SharedArrayBuffer(8), 0, { name: 'pages' });
  return { locks: [lock], ends: [lock.read.executeLocked(() => lock.write.executeLocked(() => {}))] };
});

certain('run() inside run() of one Once', () => {
  const once = new Once(new SharedArrayBuffer(4), 0, { name: 'setup' });
  return { locks: [once], ends: [once.run(() => once.run(() => {}))] };
});

const cross = (one, other) =>
  one.executeLocked(async () => {
    await sleep(2);
    await other.executeLocked(() => {});
  });

certain('two tasks that lock two mutexes in opposite orders', () => {
  const [a, b] = namedMutexes(2);
  return { locks: [a, b], ends: [cross(a, b), cross(b, a)] };
});

certain('three tasks in a circle', () => {
  const [a, b, c] = namedMutexes(3);
  return { locks: [a, b, c], ends: [cross(a, b), cross(b, c), cross(c, a)] };
});

test(
  'the message has both stacks, and the fields that it always had',
  CHAINS,
  watched(() =>
    withDoctor({ ...LONG, throwOnDeadlock: true }, async (doctor, messages) => {
      const [a] = namedMutexes(1);
      const inner = async () => a.executeLocked(() => {});
      const outer = () => a.executeLocked(async () => inner());
      await assert.rejects(outer(), { code: 'ERR_LOCK_DEADLOCK', name: 'DeadlockError' });
      const [{ mutex, name, byteOffset, cycle, certainty, waits }] = messages;
      assert.equal(mutex, a);
      assert.equal(name, a.name);
      assert.equal(byteOffset, 0);
      assert.deepEqual(cycle, [{ threadId: 0, byteOffset: 0 }]);
      assert.equal(certainty, 'certain');
      const [{ lock, holder, waiter, waitedMs }] = waits;
      assert.deepEqual(lock, { name: a.name, kind: 'Mutex', byteOffset: 0 });
      assert.match(holder.stack[0], /^outer \(.*tasks-deadlock\.test\.js:\d+:\d+\)$/);
      assert.match(waiter.stack[0], /^inner \(.*tasks-deadlock\.test\.js:\d+:\d+\)$/);
      assert.ok(waitedMs >= 0 && waitedMs < 1000);
      assert.deepEqual(
        about(
          doctor.report().deadlocks.flatMap((each) => each.waits),
          a,
        ).length,
        1,
      );
      assert.equal(a.isLocked, false);
    }),
  ),
);

test(
  'a certain deadlock is published within a turn of the loop, and without throwOnDeadlock nothing else happens',
  CHAINS,
  watched(() =>
    withDoctor(LONG, async (_, messages) => {
      const [a] = namedMutexes(1);
      await new Promise((resolve) => {
        a.executeLocked(() => {
          resolve();
          return a.executeLocked(() => {}, { ref: false });
        });
      });
      await turns();
      assert.equal(messages.length, 1);
      await sleep(30);
      assert.equal(messages.length, 1);
      assert.equal(a.inspect().waiters.length, 1);
    }),
  ),
);

// Never certain.

/** A case that ends by itself, or may: it is not named, or at most as possible. */
const uncertain = (title, body) =>
  test(
    title,
    watched(() =>
      withDoctor({ ...LONG, throwOnDeadlock: true }, async (_, messages) => {
        await body();
        assert.deepEqual(
          messages.filter(({ certainty }) => certainty === 'certain'),
          [],
        );
      }),
    ),
  );

uncertain('a child that nobody awaits, and that gets the lock later', async () => {
  const [a] = namedMutexes(1);
  let child;
  await a.executeLocked(async () => {
    child = a.executeLocked(() => {});
    await sleep(150);
  });
  await child;
});

uncertain('a function that nobody awaits', async () => {
  const [a] = namedMutexes(1);
  let child;
  await a.executeLocked(async () => {
    child = (async () => {
      await a.executeLocked(() => {});
    })();
    await sleep(150);
  });
  await child;
});

uncertain('two tasks whose inner waits nobody awaits', async () => {
  const [a, b] = namedMutexes(2);
  const children = [];
  const task = (one, other) =>
    one.executeLocked(async () => {
      await sleep(2);
      children.push(other.executeLocked(() => {}));
      await sleep(100);
    });
  await Promise.all([task(a, b), task(b, a)]);
  await Promise.all(children);
});

uncertain('a wait that loses a race against a timer', async () => {
  const [a] = namedMutexes(1);
  await a.executeLocked(() => Promise.race([a.executeLocked(() => {}), sleep(150)]));
});

uncertain('a wait in Promise.any() beside another promise', async () => {
  const [a] = namedMutexes(1);
  await a.executeLocked(() => Promise.any([a.executeLocked(() => {}), sleep(150)]));
});

uncertain('a wait in Promise.all() beside a promise that is rejected', async () => {
  const [a] = namedMutexes(1);
  const fails = () => sleep(150).then(() => Promise.reject(new Error('Rejected on purpose')));
  await assert.rejects(a.executeLocked(() => Promise.all([a.executeLocked(() => {}), fails()])));
});

uncertain('a wait under a timeout that is made by hand', async () => {
  const [a] = namedMutexes(1);
  const withTimeout = (promise) =>
    new Promise((resolve, reject) => {
      promise.then(resolve, reject);
      setTimeout(reject, 150, new Error('Timed out by hand'));
    });
  await assert.rejects(
    a.executeLocked(async () => withTimeout((async () => a.executeLocked(() => {}))())),
    /by hand/,
  );
});

uncertain('a wait with a timeout', async () => {
  const [a] = namedMutexes(1);
  await assert.rejects(
    a.executeLocked(() => a.executeLocked(() => {}, { timeout: 120 })),
    { code: 'ERR_LOCK_TIMEOUT' },
  );
});

uncertain('a wait with a signal', async () => {
  const [a] = namedMutexes(1);
  const signal = AbortSignal.timeout(120);
  const timer = setTimeout(() => {}, 1000);
  await assert.rejects(a.executeLocked(() => a.executeLocked(() => {}, { signal })));
  clearTimeout(timer);
});

uncertain('a task that waits for a sibling, which ends', async () => {
  const [a] = namedMutexes(1);
  await Promise.all([a.executeLocked(() => sleep(100)), a.executeLocked(() => sleep(1))]);
});

uncertain('a reader inside a reader', async () => {
  const lock = new RwLock(new SharedArrayBuffer(8));
  await lock.read.executeLocked(() => lock.read.executeLocked(() => sleep(60)));
});

// Possible ones.

test(
  'lockAsync() twice in one flow is possible, after stuckMs',
  watched(() =>
    withDoctor({ stuckMs: 100, longHoldMs: Infinity }, async (doctor, messages) => {
      const [a] = namedMutexes(1);
      await a.lockAsync();
      const second = a.lockAsync();
      await sleep(40);
      assert.deepEqual(messages, []);
      while (messages.length === 0) await sleep(5);
      assert.equal(messages[0].certainty, 'possible');
      const [deadlock] = doctor.report().deadlocks.filter(({ waits }) => about(waits, a).length > 0);
      assert.equal(deadlock.certainty, 'possible');
      a.unlock();
      await second;
      a.unlock();
    }),
  ),
);

test(
  'a child that nobody awaits is possible, after stuckMs',
  watched(() =>
    withDoctor({ stuckMs: 100, longHoldMs: Infinity }, async (_, messages) => {
      const [a] = namedMutexes(1);
      let child;
      await a.executeLocked(async () => {
        child = a.executeLocked(() => {});
        while (messages.length === 0) await sleep(5);
      });
      await child;
      assert.equal(messages[0].certainty, 'possible');
    }),
  ),
);
