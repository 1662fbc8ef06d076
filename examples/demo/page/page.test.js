// The counter page in a real browser: its buttons, its totals, what it shows while workers run, and how its server ends.

const assert = require('node:assert/strict');
const { after, afterEach, before, beforeEach, describe, test } = require('node:test');
const { CounterPage, launch } = require('./helpers/browser.js');
const { endServer, killServers, startServer } = require('./helpers/server.js');

const JOB = 400_000; // four workers, 100,000 changes each
const WATCHDOG = { timeout: 60_000 };
const ATTEMPTS = 10;

after(killServers);

describe('the counter page', { timeout: 180_000 }, () => {
  let browser;
  let server;
  let page;

  before(async () => {
    [browser, server] = await Promise.all([launch(), startServer()]);
  });
  beforeEach(async () => {
    page = await CounterPage.open(browser, server.url);
    await page.reset();
  });
  afterEach(async () => {
    await page?.page.close();
    assert.deepEqual(page?.errors, []);
  });
  after(async () => {
    await browser?.close();
    if (server) assert.equal((await endServer(server)).code, 0);
  });

  for (const [direction, by] of [
    ['increment', 1],
    ['decrement', -1],
  ]) {
    for (const counter of ['Atomics', 'mutex']) {
      test(`${direction} under "${counter}" makes every change`, WATCHDOG, async () => {
        await page.press(counter, direction);
        const { state, count, expected, difference } = await page.finished(counter, JOB);
        assert.deepEqual(
          { state, count, expected, difference },
          { state: 'exact', count: by * JOB, expected: by * JOB, difference: 0 },
        );
        await page.says(`Done. ${counter[0].toUpperCase()}${counter.slice(1)}: ${by < 0 ? '−' : ''}400,000, exact.`);
      });
    }

    test(
      `${direction} under "no lock" makes no change too many, and the page says how many are missing`,
      WATCHDOG,
      async () => {
        await page.press('no lock', direction);
        const { state, count, expected, difference } = await page.finished('no lock', JOB);
        assert.equal(expected, by * JOB);
        assert.ok(by * count >= 0 && by * count <= JOB, `${count}`);
        assert.equal(difference, JOB - by * count);
        assert.equal(state, difference === 0 ? 'exact' : 'wrong');
      },
    );
  }

  test('increments and decrements run at once, and clicks while they run add up', WATCHDOG, async () => {
    const presses = ['increment', 'decrement', 'increment', 'increment', 'decrement', 'increment'];
    const [changes, total] = [presses.length * JOB, 2 * JOB];
    await page.page.evaluate((directions) => {
      for (const direction of directions) {
        for (const counter of ['mutex', 'Atomics', 'no lock'])
          document.querySelector(`[data-counter="${counter}"] .${direction}`).click();
      }
    }, presses);
    for (const counter of ['mutex', 'Atomics']) {
      const { state, count, expected } = await page.finished(counter, changes);
      assert.deepEqual({ state, count, expected }, { state: 'exact', count: total, expected: total });
    }
    const unguarded = await page.finished('no lock', changes);
    assert.equal(unguarded.expected, total);
    assert.ok(Math.abs(unguarded.count) <= changes);
  });

  test('the count, the holder and the waits change while the workers run', WATCHDOG, async () => {
    const missing = async (changes) => {
      const seen = (await page.seen('mutex')).filter(({ state }) => state === 'running');
      const counts = new Set(seen.map(({ count }) => count).filter((count) => count > 0 && count < changes));
      const threads = new Set(seen.flatMap((each) => each.threads));
      const has = (pattern) => [...threads].some((thread) => pattern.test(thread));
      return [
        counts.size > 1 || 'two counts before the end',
        has(/^worker \d holds$/) || 'a worker that holds',
        has(/^worker \d blocked$/) || 'a blocked worker',
        has(/^main awaits$/) || 'main awaiting',
        seen.some(({ waits }) => /Holder: worker \d\. Waits: [1-4] blocked, 1 awaiting\./.test(waits)) || 'the sum',
      ].filter((each) => each !== true);
    };
    let unseen;
    for (let job = 1; job <= ATTEMPTS && unseen?.length !== 0; job++) {
      await page.press('mutex', 'increment');
      await page.finished('mutex', job * JOB);
      unseen = await missing(job * JOB);
    }
    assert.deepEqual(unseen, []);
    await page.page.locator('#waits', { hasText: 'Holder: none. Waits: 0 blocked, 0 awaiting.' }).waitFor();
  });

  test(
    'a page that is reloaded in the middle is served, shows the run, and ends with the same totals',
    WATCHDOG,
    async () => {
      let changes = 0;
      let state;
      for (let attempt = 1; attempt <= ATTEMPTS && state !== 'running'; attempt++) {
        for (const direction of ['increment', 'decrement', 'increment']) await page.press('mutex', direction);
        changes += 3 * JOB;
        await page.page.reload();
        await page.isConnected();
        ({ state } = await page.show('mutex'));
        const { count } = await page.finished('mutex', changes);
        assert.equal(count, attempt * JOB);
      }
      assert.equal(state, 'running');
    },
  );

  test('two pages press and see the same counter', WATCHDOG, async () => {
    const other = await CounterPage.open(browser, server.url);
    await Promise.all([page.press('mutex', 'increment'), other.press('mutex', 'decrement')]);
    await Promise.all([page.press('Atomics', 'decrement'), other.press('mutex', 'decrement')]); // one click in each page
    for (const each of [page, other]) {
      assert.deepEqual((await each.finished('mutex', 3 * JOB)).count, -JOB);
      assert.deepEqual((await each.finished('Atomics', JOB)).count, -JOB);
    }
    await other.reset();
    await page.isReset();
    assert.equal((await page.show('mutex')).count, 0);
    assert.deepEqual(other.errors, []);
    await other.page.close();
  });

  test('a reset is refused while the workers run, and its button is disabled', WATCHDOG, async () => {
    const startAndReset = async () => {
      const button = document.getElementById('reset');
      const disabled = new Promise((resolve) => {
        const look = () => button.disabled && resolve(true);
        new MutationObserver(look).observe(button, { attributes: true });
        look();
      });
      for (let job = 0; job < 3; job++) await fetch('start?counter=mutex&by=1', { method: 'POST' });
      const { status } = await fetch('reset', { method: 'POST' });
      // The event that starts the run reaches the page a moment later than the server.
      return { status, isDisabled: await disabled };
    };
    let result;
    for (let attempt = 1; attempt <= ATTEMPTS && result?.status !== 409; attempt++)
      result = await page.page.evaluate(startAndReset);
    assert.deepEqual(result, { status: 409, isDisabled: true });
    assert.equal((await page.finished('mutex', 3 * JOB)).count, 3 * JOB);
    page.errors.length = 0; // Chromium logs the refusal as an error.
  });
});
