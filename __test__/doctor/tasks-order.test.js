// Lock order among the tasks of one thread: what must be found, and what must stay silent. The cases are those of Abseil's
// deadlock detector and of tracing-mutex, by meaning.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');
const { createLocks, inside } = require('../helpers/doctor.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');
const { Mutex, locks } = require('../../index.js');
const { start } = require('../../lib/doctor/index.js');

const turn = () => new Promise((resolve) => setTimeout(resolve, 1));

/** The names of each cycle, as the doctor that runs during `body` reports them: those of locks whose names begin with `prefix`. */
async function cyclesOf(prefix, body, options) {
  const doctor = start({ contention: false, ...options });
  try {
    await body(doctor);
    const cycles = doctor.report().lockOrder.map(({ edges }) => edges.map(({ from }) => from.name ?? from.byteOffset));
    return cycles.filter((cycle) => cycle.some((name) => String(name).startsWith(prefix)));
  } finally {
    doctor.stop();
  }
}

let cases = 0;
/** A case: `body` gets locks with names, and what is reported is compared. */
const order = (title, expected, count, body, options = {}) => {
  test(
    title,
    expected.length > 0 ? { ...needs('async frames'), ...options } : options,
    watched(async () => {
      const prefix = `case ${cases++} `;
      const named = createLocks(count, (index) => ({ name: `${prefix}${'abcdefgh'[index]}` }));
      const cycles = await cyclesOf(prefix, () => body(...named));
      const short = cycles.map((cycle) => cycle.map((name) => name.slice(prefix.length)).join(''));
      assert.deepEqual(short, expected);
    }),
  );
};

// To be found.

order('two locks in both orders, one after the other, are a cycle', ['ab'], 2, async (a, b) => {
  await inside(a, b);
  await inside(b, a);
});

/** Options that end no wait. */
const ENDLESS = [
  { ifAvailable: false },
  { steal: false },
  { timeout: Infinity },
  { timeout: Number.NaN },
  { timeout: undefined, signal: undefined },
];

for (const options of ENDLESS) {
  const text = inspect(options);
  test(
    `names in both orders are a cycle, with ${text}`,
    needs('async frames'),
    watched(async () => {
      const [a, b] = ['a', 'b'].map((letter) => `${letter} with ${text}`);
      const inside = (outer, inner) => locks.request(outer, options, () => locks.request(inner, options, () => {}));
      const cycles = await cyclesOf('a with', async () => {
        await inside(a, b);
        await inside(b, a);
      });
      assert.deepEqual(cycles, [[a, b]]);
    }),
  );
}

order('three locks in a circle are a cycle, though no two are in both orders', ['abc'], 3, async (a, b, c) => {
  await inside(a, b);
  await inside(b, c);
  await inside(c, a);
});

order('six locks in a circle are a cycle', ['abcdef'], 6, async (...all) => {
  for (let index = 0; index < 6; index++) await inside(all[index], all[(index + 1) % 6]);
});

order('two circles are two', ['ab', 'cd'], 4, async (a, b, c, d) => {
  for (const [one, other] of [
    [a, b],
    [b, a],
    [c, d],
    [d, c],
  ]) {
    await inside(one, other);
  }
});

order('an order through several levels counts', ['abc', 'ac'], 3, async (a, b, c) => {
  await a.executeLocked(() => b.executeLocked(() => c.executeLocked(() => {})));
  await inside(c, a);
});

order('a lock that was taken by tryLock() comes before what its thread blocks for', ['ab'], 2, async (a, b) => {
  await inside(a, b);
  const again = new Mutex(a.buffer, a.byteOffset, { name: a.name, allowMainThread: true });
  assert.ok(b.tryLock());
  again.lock();
  again.unlock();
  b.unlock();
});

order('an outer lock that is held both times is a gate', [], 3, async (a, b, gate) => {
  await gate.executeLocked(() => inside(a, b));
  await gate.executeLocked(() => inside(b, a));
});

order('a gate that is held one time only is none', ['ab'], 3, async (a, b, gate) => {
  await gate.executeLocked(() => inside(a, b));
  await inside(b, a);
});

order('a lock that was taken with a timeout counts as held', ['ab'], 2, async (a, b) => {
  await a.executeLocked(() => b.executeLocked(() => {}), { timeout: 1000 });
  await b.executeLocked(() => a.executeLocked(() => {}), { timeout: 1000 });
});

order('what a function awaits by timers and then() comes after what it holds', ['ab'], 2, async (a, b) => {
  await a.executeLocked(async () => {
    await turn();
    await turn().then(() => b.executeLocked(turn));
  });
  await b.executeLocked(() =>
    turn()
      .then(turn)
      .then(() => a.executeLocked(turn)),
  );
});

order('lockAsync() and acquireAsync() in a task count', ['ab'], 2, async (a, b) => {
  await a.executeLocked(async () => {
    await b.lockAsync();
    b.unlock();
  });
  await b.executeLocked(async () => {
    const guard = await a.acquireAsync();
    guard.unlock();
  });
});

order('an order that is seen under contention counts', ['ba'], 2, async (a, b) => {
  const busy = b.executeLocked(turn);
  await Promise.all([busy, inside(a, b)]);
  await inside(b, a);
});

order('an order is found, however often nobody has awaited the inner lock before', ['ab'], 2, async (a, b) => {
  const children = [];
  for (let round = 0; round < 40; round++) {
    await a.executeLocked(() => {
      children.push(b.executeLocked(() => {}));
    });
  }
  await Promise.all(children);
  // It is not asked each time any more.
  for (let round = 0; round < 40; round++) await inside(a, b);
  await inside(b, a);
});

// To stay silent.

const inBothOrders = async (a, b) => {
  const both = async (one, other) => {
    await one.lockAsync();
    await turn();
    await other.lockAsync();
    other.unlock();
    one.unlock();
  };
  await both(a, b);
  await both(b, a);
};
order('of what lockAsync() has locked nobody knows which code goes on with it', [], 2, inBothOrders);

order('tasks at once that lock one lock each have no order', [], 2, async (a, b) => {
  const lockOne = async (lock) => {
    await lock.lockAsync();
    await turn();
    lock.unlock();
  };
  const guardOne = async (lock) => {
    const guard = await lock.acquireAsync();
    await turn();
    guard.unlock();
  };
  for (const act of [lockOne, guardOne]) {
    await Promise.all([a, b].map(act));
    await Promise.all([b, a].map(act));
  }
});

order('a synchronous call that nobody awaits locks after nothing', [], 2, async (a, b) => {
  const children = [];
  await a.executeLocked(() => {
    children.push(b.executeLocked(() => {}));
  });
  await b.executeLocked(() => {
    children.push(a.executeLocked(turn));
  });
  await Promise.all(children);
});

order('one order everywhere is no cycle', [], 4, async (...all) => {
  for (let one = 0; one < 4; one++) {
    for (let other = one + 1; other < 4; other++) await inside(all[one], all[other]);
  }
});

order('two locks that are never held together are no cycle', [], 2, async (a, b) => {
  for (let round = 0; round < 3; round++) {
    await a.executeLocked(turn);
    await b.executeLocked(turn);
  }
});

order('locks of tasks that run at the same time have no order', [], 2, async (a, b) => {
  for (let round = 0; round < 3; round++) {
    await Promise.all([a.executeLocked(turn), b.executeLocked(turn)]);
    await Promise.all([b.executeLocked(turn), a.executeLocked(turn)]);
  }
});

order('the same consistent order in many tasks at once is no cycle', [], 2, async (a, b) => {
  const task = () =>
    a.executeLocked(async () => {
      await turn();
      await b.executeLocked(turn);
    });
  await Promise.all(Array.from({ length: 8 }, task));
});

order('raw holds of tasks at once, in one order, are no cycle', [], 2, async (a, b) => {
  const task = async () => {
    await a.lockAsync();
    await b.lockAsync();
    await turn();
    a.unlock();
    await turn();
    b.unlock();
  };
  await Promise.all(Array.from({ length: 8 }, task));
});

order('tryLock() makes no order with what it tries', [], 2, async (a, b) => {
  await a.executeLocked(() => {
    assert.ok(b.tryLock());
    b.unlock();
  });
  await b.executeLocked(() => {
    assert.ok(a.tryLock());
    a.unlock();
  });
});

order('tryAcquire() makes no order with what it tries', [], 2, async (a, b) => {
  await a.executeLocked(() => b.tryAcquire().unlock());
  await b.executeLocked(() => a.tryAcquire().unlock());
});

order('a wait with a timeout makes no order with what it waits for', [], 2, async (a, b) => {
  await a.executeLocked(() => b.executeLocked(() => {}, { timeout: 1000 }));
  await b.executeLocked(() => a.executeLocked(() => {}, { timeout: 1000 }));
});

order('a wait with a signal makes no order with what it waits for', [], 2, async (a, b) => {
  const { signal } = new AbortController();
  await a.executeLocked(() => b.executeLocked(() => {}, { signal }));
  await b.executeLocked(() => a.executeLocked(() => {}, { signal }));
});

const unawaited = async (a, b) => {
  const children = [];
  await a.executeLocked(async () => {
    children.push(b.executeLocked(turn));
    await turn();
  });
  await Promise.all(children);
  await b.executeLocked(async () => {
    children.push(a.executeLocked(turn));
    await turn();
  });
  await Promise.all(children);
};
order('a child that nobody awaits locks after nothing', [], 2, unawaited, needs('async stacks'));

order(
  'what nobody awaits locks after nothing, though another wait that began in its call is awaited',
  [],
  3,
  async (a, b, other) => {
    await other.lockAsync();
    setTimeout(() => other.unlock(), 20);
    let child;
    await a.executeLocked(async () => {
      let waiting;
      const options = {
        get timeout() {
          waiting ??= other.lockAsync();
          return Infinity;
        },
      };
      child = b.executeLocked(turn, options);
      await waiting;
      other.unlock();
    });
    await child;
    await inside(b, a);
  },
  needs('async stacks'),
);

order('after lockAsync(), a child that nobody awaits locks after nothing', [], 2, async (a, b) => {
  const child = async (other) => {
    await turn();
    await other.lockAsync();
    other.unlock();
  };
  const children = [];
  const parent = async (one, other) => {
    await one.lockAsync();
    children.push(child(other));
    await turn();
    await turn();
    one.unlock();
  };
  await parent(a, b);
  await parent(b, a);
  await Promise.all(children);
});

order('requests at once that lock hand over hand, in one order, are no cycle', [], 3, async (a, b, c) => {
  const request = async () => {
    await a.lockAsync();
    await turn();
    await b.lockAsync();
    a.unlock();
    await c.lockAsync();
    await turn();
    b.unlock();
    c.unlock();
  };
  await Promise.all(Array.from({ length: 8 }, request));
});

order('a child that runs on after its parent has unlocked locks after nothing', [], 2, async (a, b) => {
  let child;
  await a.executeLocked(() => {
    child = turn().then(() => b.executeLocked(() => {}));
  });
  await child;
  await inside(b, a);
});

order('what is unlocked before the next is locked comes before nothing', [], 2, async (a, b) => {
  await a.executeLocked(() => {});
  await b.executeLocked(() => {});
  await b.executeLocked(() => {});
  await a.executeLocked(() => {});
});

test(
  'an edge has both call sites and the thread of its first sighting',
  needs('async frames'),
  watched(async () => {
    const [a, b] = createLocks(2, (index) => ({ name: `sites ${index}` }));
    const doctor = start({ contention: false });
    try {
      await a.executeLocked(function holdsA() {
        return b.executeLocked(() => {});
      });
      await b.executeLocked(async function holdsB() {
        await turn();
        await a.executeLocked(() => {});
      });
      const [{ edges }] = doctor.report().lockOrder.filter(({ edges: [{ from }] }) => from.name === 'sites 0');
      assert.deepEqual(
        edges.map(({ from, to }) => [from, to]),
        [
          [
            { name: 'sites 0', kind: 'Mutex', byteOffset: 0 },
            { name: 'sites 1', kind: 'Mutex', byteOffset: 64 },
          ],
          [
            { name: 'sites 1', kind: 'Mutex', byteOffset: 64 },
            { name: 'sites 0', kind: 'Mutex', byteOffset: 0 },
          ],
        ],
      );
      assert.match(edges[0].locked.stack[0], /^holdsA \(.*tasks-order\.test\.js:\d+:\d+\)$/);
      assert.match(edges[1].locked.stack[0], /^holdsB \(.*tasks-order\.test\.js:\d+:\d+\)$/);
      for (const { held, locked } of edges) {
        assert.match(held.stack[0], /tasks-order\.test\.js:\d+:\d+\)$/);
        assert.equal(held.threadId, 0);
        assert.equal(locked.threadId, 0);
      }
    } finally {
      doctor.stop();
    }
  }),
);
