// Deadlocks of awaited tasks of one thread: named as likely once they have lasted, and never if nobody awaits.

const assert = require('node:assert/strict');
const { mock, test } = require('node:test');
const vm = require('node:vm');
const clock = require('../../lib/load/clock.js');
const { about, namedMutexes, sleep, withDoctor } = require('../helpers/doctor.js');
const { watched } = require('../helpers/threads.js');
const { needs } = require('../helpers/runtime.js');
const { DeadlockError, LockTable, Once, RwLock, Semaphore, lockAll, locks } = require('../../index.js');

const LONG = { stuckMs: Infinity, longHoldMs: Infinity, likelyMs: 40, throwOnDeadlock: 'likely' };
const CHAINS = needs('async stacks');

const names = ({ waits }) => waits.map(({ lock }) => lock.name).sort();

/** A case that is named as likely: `body` starts what could never end, and returns the locks of the cycle. */
const likely = (title, body) =>
  test(
    title,
    CHAINS,
    watched(() =>
      withDoctor(LONG, async (_, messages) => {
        const { locks, ends } = body();
        // One of them gives up, so that the others come through.
        const outcomes = await Promise.allSettled(ends);
        const [error, ...others] = outcomes.map(({ reason }) => reason).filter((each) => each instanceof DeadlockError);
        assert.deepEqual(others, []);
        const first = error.stack.split('\n').find((line) => /^\s+at /.test(line));
        assert.match(first, /tasks-deadlock\.test\.js:|evalmachine/);
        assert.deepEqual(
          messages.map(({ certainty }) => certainty),
          ['likely'],
        );
        assert.deepEqual(names(messages[0]), locks.map(({ name }) => name).sort());
      }),
    ),
  );

likely('executeLocked() inside executeLocked() of the same mutex', () => {
  const [a] = namedMutexes(1);
  return { locks: [a], ends: [a.executeLocked(async () => a.executeLocked(() => {}))] };
});

likely('a reader inside a reader, behind a writer that came first', () => {
  const pages = new RwLock(new SharedArrayBuffer(8), 0, { name: 'pages' });
  const reads = pages.read.executeLocked(async () => {
    pages.write.executeLocked(() => {});
    await pages.read.executeLocked(() => {});
  });
  return { locks: [pages], ends: [reads] };
});

likely('functions of another realm, as test runners make', () => {
  const [a] = namedMutexes(1);
  const inAnother = vm.runInNewContext(
    '(lock) => lock.executeLocked(async () => { await lock.executeLocked(() => {}); })',
  );
  return { locks: [a], ends: [inAnother(a)] };
});

test(
  'also after a while in which nothing was waited for, so that nobody looked',
  CHAINS,
  watched(() =>
    withDoctor(LONG, async () => {
      const stops = new Promise((resolve) => {
        mock.method(clock, 'clearInterval', (timer) => resolve(clearInterval(timer)), { times: 1 });
      });
      const [a, b] = namedMutexes(2);
      await a.lockAsync();
      const next = a.lockAsync();
      a.unlock();
      await next;
      a.unlock();
      await stops;
      await assert.rejects(
        b.executeLocked(async () => b.executeLocked(() => {})),
        DeadlockError,
      );
    }),
  ),
);

/** Ways in which a lock goes back before its function ends. */
const EARLY = {
  'an early unlock of a name': (name) =>
    locks.request(name, async (held) => {
      held.unlock();
      await sleep(1);
    }),
  'an early unlock of several names': (name) =>
    locks.request([name, `${name} too`], async (held) => {
      for (const lock of held) lock.unlock();
      await sleep(1);
    }),
  async 'a theft'(name) {
    let end;
    const stolen = locks.request(name, () => new Promise((resolve) => (end = resolve)));
    while (end === undefined) await sleep(1);
    await locks.request(name, { steal: true }, () => {});
    await assert.rejects(stolen, { name: 'AbortError' });
    end();
    await sleep(1);
  },
  async 'an early leave()'() {
    const [mutex] = namedMutexes(1);
    mutex.enter((token) => mutex.leave(token));
    await sleep(1);
  },
};

for (const [what, act] of Object.entries(EARLY)) {
  test(
    `also after ${what}`,
    CHAINS,
    watched(() =>
      withDoctor(LONG, async () => {
        const [mutex] = namedMutexes(1);
        await act(mutex.name);
        await assert.rejects(
          mutex.executeLocked(async () => mutex.executeLocked(() => {})),
          DeadlockError,
        );
      }),
    ),
  );
}

likely('while a test has put timers and a clock of its own in their places', () => {
  const [a] = namedMutexes(1);
  const mocks = [mock.method(globalThis, 'setInterval', assert.fail), mock.method(process, 'hrtime', () => [0, 0])];
  const end = a.executeLocked(async () => a.executeLocked(() => {}));
  const restored = end.finally(() => {
    for (const { mock: each } of mocks) each.restore();
  });
  return { locks: [a], ends: [restored] };
});

likely('a wait after a timer, by a function that is awaited', () => {
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

likely('a wait in then()', () => {
  const [a] = namedMutexes(1);
  const end = a.executeLocked(() =>
    sleep(1)
      .then(() => a.executeLocked(() => {}))
      .then(() => 1)
      .finally(() => {}),
  );
  return { locks: [a], ends: [end] };
});

likely('a wait that is awaited later than it began', () => {
  const [a] = namedMutexes(1);
  const end = a.executeLocked(async () => {
    const inner = a.executeLocked(() => {});
    await sleep(5);
    await inner;
  });
  return { locks: [a], ends: [end] };
});

likely('lockAsync() inside executeLocked()', () => {
  const [a] = namedMutexes(1);
  return { locks: [a], ends: [a.executeLocked(async () => a.lockAsync())] };
});

likely('a wait through another lock that is free', () => {
  const [a, b] = namedMutexes(2);
  return { locks: [a], ends: [a.executeLocked(() => b.executeLocked(() => a.executeLocked(() => {})))] };
});

likely('a writer inside a reader', () => {
  const lock = new RwLock(new SharedArrayBuffer(8), 0, { name: 'pages' });
  return { locks: [lock], ends: [lock.read.executeLocked(() => lock.write.executeLocked(() => {}))] };
});

likely('run() inside run() of one Once', () => {
  const once = new Once(new SharedArrayBuffer(4), 0, { name: 'setup' });
  return { locks: [once], ends: [once.run(() => once.run(() => {}))] };
});

const cross = (one, other) =>
  one.executeLocked(async () => {
    await sleep(2);
    await other.executeLocked(() => {});
  });

likely('two tasks that lock two mutexes in opposite orders', () => {
  const [a, b] = namedMutexes(2);
  return { locks: [a, b], ends: [cross(a, b), cross(b, a)] };
});

likely('three tasks in a circle', () => {
  const [a, b, c] = namedMutexes(3);
  return { locks: [a, b, c], ends: [cross(a, b), cross(b, c), cross(c, a)] };
});

for (const newest of [0, 1, 2]) {
  test(
    `of three tasks in a circle the wait that began last is rejected, and its error is of its own place: ${newest}`,
    CHAINS,
    watched(() =>
      withDoctor(LONG, async () => {
        const mutexes = namedMutexes(3);
        let isLate;
        const late = new Promise((resolve) => (isLate = resolve));
        const inner = [
          (lock) =>
            (async function first() {
              await lock.executeLocked(() => {});
            })(),
          (lock) =>
            (async function second() {
              await lock.executeLocked(() => {});
            })(),
          (lock) =>
            (async function third() {
              await lock.executeLocked(() => {});
            })(),
        ];
        const ends = mutexes.map((mutex, at) =>
          mutex.executeLocked(async () => {
            await (at === newest ? late : undefined);
            await inner[at](mutexes[(at + 1) % 3]);
          }),
        );
        const wanted = () => mutexes.filter((mutex) => mutex.inspect().waiters.length > 0).length;
        while (wanted() < 2) await sleep(1);
        isLate();
        const outcomes = await Promise.allSettled(ends);
        assert.deepEqual(
          outcomes.map(({ reason }) => reason?.stack.match(/^ +at (\w+) /m)[1]),
          ['first', 'second', 'third'].map((name, at) => (at === newest ? name : undefined)),
        );
      }),
    ),
  );
}

test(
  'the message has both stacks, and the fields that it always had',
  CHAINS,
  watched(() =>
    withDoctor(LONG, async (doctor, messages) => {
      const [a] = namedMutexes(1);
      const inner = async () => a.executeLocked(() => {});
      const outer = () => a.executeLocked(async () => inner());
      await assert.rejects(outer(), { code: 'ERR_LOCK_DEADLOCK', name: 'DeadlockError' });
      const [{ mutex, name, byteOffset, cycle, certainty, waits }] = messages;
      assert.equal(mutex, a);
      assert.equal(name, a.name);
      assert.equal(byteOffset, 0);
      assert.deepEqual(cycle, [{ threadId: 0, byteOffset: 0 }]);
      assert.equal(certainty, 'likely');
      const [{ lock, holder, waiter, waitedMs }] = waits;
      assert.deepEqual(lock, { name: a.name, kind: 'Mutex', byteOffset: 0 });
      assert.match(holder.stack[0], /^outer \(.*tasks-deadlock\.test\.js:\d+:\d+\)$/);
      assert.match(waiter.stack[0], /^inner \(.*tasks-deadlock\.test\.js:\d+:\d+\)$/);
      assert.ok(waitedMs >= LONG.likelyMs);
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
  'a likely deadlock is published once, and unless throwOnDeadlock is "likely" nothing else happens',
  CHAINS,
  watched(() =>
    withDoctor({ ...LONG, throwOnDeadlock: true }, async (_, messages) => {
      const [a] = namedMutexes(1);
      await new Promise((resolve) => {
        a.executeLocked(() => {
          resolve();
          return a.executeLocked(() => {}, { ref: false });
        });
      });
      while (messages.length === 0) await sleep(5);
      await sleep(3 * LONG.likelyMs);
      assert.equal(messages.length, 1);
      assert.equal(a.inspect().waiters.length, 1);
    }),
  ),
);

// Never named.

/** A case that ends by itself, though it lasts. */
const silent = (title, body, likelyMs = LONG.likelyMs) =>
  test(
    title,
    watched(() =>
      withDoctor({ ...LONG, likelyMs }, async (_, messages) => {
        await body();
        assert.deepEqual(messages, []);
      }),
    ),
  );

silent('a child that nobody awaits, and that gets the lock later', async () => {
  const [a] = namedMutexes(1);
  let child;
  await a.executeLocked(async () => {
    child = a.executeLocked(() => {});
    await sleep(150);
  });
  await child;
});

silent('a function that nobody awaits', async () => {
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

silent('two tasks whose inner waits nobody awaits', async () => {
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

silent(
  'a wait that loses a race against a timer',
  async () => {
    const [a] = namedMutexes(1);
    await a.executeLocked(() => Promise.race([a.executeLocked(() => {}), sleep(150)]));
  },
  60_000,
);

silent('a wait in Promise.any() beside another promise', async () => {
  const [a] = namedMutexes(1);
  await a.executeLocked(() => Promise.any([a.executeLocked(() => {}), sleep(150)]));
});

silent(
  'a wait in Promise.all() beside a promise that is rejected',
  async () => {
    const [a] = namedMutexes(1);
    const fails = () => sleep(150).then(() => Promise.reject(new Error('Rejected on purpose')));
    await assert.rejects(a.executeLocked(() => Promise.all([a.executeLocked(() => {}), fails()])));
  },
  60_000,
);

silent(
  'a wait under a timeout that is made by hand',
  async () => {
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
  },
  60_000,
);

silent('a wait with a timeout', async () => {
  const [a] = namedMutexes(1);
  await assert.rejects(
    a.executeLocked(() => a.executeLocked(() => {}, { timeout: 120 })),
    { code: 'ERR_LOCK_TIMEOUT' },
  );
});

silent('a reader inside a reader, behind a writer that a signal ends', async () => {
  const pages = new RwLock(new SharedArrayBuffer(8), 0, { name: 'pages' });
  const signal = AbortSignal.timeout(120);
  const timer = setTimeout(() => {}, 1000);
  let writes;
  await pages.read.executeLocked(async () => {
    writes = assert.rejects(pages.write.executeLocked(() => {}, { signal }));
    await pages.read.executeLocked(() => {});
  });
  await writes;
  clearTimeout(timer);
});

silent('a wait with a signal', async () => {
  const [a] = namedMutexes(1);
  const signal = AbortSignal.timeout(120);
  const timer = setTimeout(() => {}, 1000);
  await assert.rejects(a.executeLocked(() => a.executeLocked(() => {}, { signal })));
  clearTimeout(timer);
});

silent('a task that waits for a sibling, which ends', async () => {
  const [a] = namedMutexes(1);
  await Promise.all([a.executeLocked(() => sleep(100)), a.executeLocked(() => sleep(1))]);
});

silent('a reader inside a reader', async () => {
  const lock = new RwLock(new SharedArrayBuffer(8));
  await lock.read.executeLocked(() => lock.read.executeLocked(() => sleep(60)));
});

silent('lockAsync() twice in one flow, since nobody knows which code goes on with it', async () => {
  const [a] = namedMutexes(1);
  await a.lockAsync();
  const second = a.lockAsync();
  await sleep(150);
  a.unlock();
  await second;
  a.unlock();
});

silent('a callback that unlocks a name early, and awaits who comes next', async () => {
  const name = namedMutexes(1)[0].name;
  await locks.request(name, async (lock) => {
    const next = locks.request(name, () => sleep(150));
    lock.unlock();
    await next;
  });
});

silent('a holder that was stolen from, and awaits the thief', async () => {
  const name = namedMutexes(1)[0].name;
  const victim = locks.request(name, async () => {
    await sleep(1);
    const thief = locks.request(name, { steal: true }, () => sleep(150));
    await locks.request(name, () => {});
    await thief;
  });
  await assert.rejects(victim, { name: 'AbortError' });
});

silent('a pool with a permit left to come', async () => {
  const pool = new Semaphore(new SharedArrayBuffer(4), 0, 2);
  const other = await pool.acquireAsync();
  setTimeout(() => other.release(), 150);
  await pool.execute(() => pool.execute(() => {}));
});

likely('a pool of two permits, in which two nest', () => {
  const pool = new Semaphore(new SharedArrayBuffer(4), 0, 2, { name: 'connections' });
  const nested = () =>
    pool.execute(async () => {
      await sleep(2);
      await pool.execute(() => {});
    });
  return { locks: [pool, pool], ends: [nested(), nested()] };
});

likely('a pool of one permit', () => {
  const pool = new Semaphore(new SharedArrayBuffer(4), 0, 1, { name: 'connection' });
  return { locks: [pool], ends: [pool.execute(() => pool.execute(() => {}))] };
});

likely('request() inside request()', () => {
  const [lock] = namedMutexes(1);
  return { locks: [lock], ends: [locks.request(lock.name, async () => locks.request(lock.name, () => {}))] };
});

test(
  'a thread that blocks for what its own task holds is in a certain deadlock, which the call reports once',
  watched(() =>
    withDoctor(LONG, async (doctor, messages) => {
      const [a] = namedMutexes(1, { allowMainThread: true });
      await a.executeLocked(() => assert.throws(() => a.lock(), { code: 'ERR_LOCK_DEADLOCK' }));
      assert.equal(messages.length, 1);
      assert.deepEqual(
        doctor.report().deadlocks.map(({ certainty, waits }) => [certainty, waits.length]),
        [['certain', 1]],
      );
    }),
  ),
);

test(
  'names that differ in half a pair of surrogates are two locks',
  CHAINS,
  watched(() =>
    withDoctor({ ...LONG, throwOnDeadlock: false }, async (doctor) => {
      const [one, other] = ['\ud800', '\ud801'];
      const held = await locks.acquireAsync(other);
      const nested = locks.request(one, () => locks.request(other, () => {}));
      await sleep(3 * LONG.likelyMs);
      held.unlock();
      await nested;
      assert.deepEqual(doctor.report().deadlocks, []);
    }),
  ),
);

/** Calls that block for several locks, of which this thread holds one. */
const SEVERAL = {
  'lockAll()'() {
    const [free, held] = namedMutexes(2, { allowMainThread: true });
    held.lock();
    return { lock: held, call: () => lockAll([free, held]) };
  },
  'lockAll() of a table'() {
    const { name } = namedMutexes(1)[0];
    const table = new LockTable(new SharedArrayBuffer(LockTable.bytes(4)), 0, 4, { name, allowMainThread: true });
    table.lock(1);
    return { lock: table, call: () => table.lockAll([0, 1]) };
  },
};

for (const [what, make] of Object.entries(SEVERAL)) {
  test(
    `${what} in which a thread blocks for what it holds itself is in a certain deadlock`,
    watched(() =>
      withDoctor(LONG, async (doctor) => {
        const { lock, call } = make();
        assert.throws(call, { code: 'ERR_LOCK_DEADLOCK' });
        assert.deepEqual(
          doctor.report().deadlocks.map(({ certainty, waits }) => [certainty, waits.map((wait) => wait.lock.name)]),
          [['certain', [lock.name]]],
        );
        assert.deepEqual(doctor.report().waiting, []);
      }),
    ),
  );
}
