// Opens the page in the Chromium that is on the PATH, or that `CHROMIUM` names, and uses it as a person does.

const { accessSync, constants } = require('node:fs');
const path = require('node:path');
const { chromium } = require('playwright-core');

const LIMIT_MS = 30_000;
const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

const isProgram = (file) => {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

const findChromium = () => {
  const folders = process.env.PATH.split(path.delimiter);
  const files = NAMES.flatMap((name) => folders.map((folder) => path.join(folder, name)));
  const found = process.env.CHROMIUM ?? files.find(isProgram);
  if (!found)
    throw new Error(`None of ${NAMES.join(', ')} is on the PATH; install Chromium, or set CHROMIUM to its path.`);
  return found;
};

/** Chromium does not start its sandbox as root. */
exports.launch = () =>
  chromium.launch({ executablePath: findChromium(), chromiumSandbox: process.getuid?.() !== 0, timeout: LIMIT_MS });

const toNumber = (text) => Number(text.replace(/[,\s]/g, '').replace('−', '-'));

/** Runs inside the page: records everything that its counters and threads show. */
const record = () => {
  window.seen = [];
  const text = (parent, name) => parent.querySelector(`.${name}`).textContent;
  new MutationObserver(() => {
    if (!document.querySelector('#threads li')) return; // no event has come yet
    window.seen.push({
      counters: [...document.querySelectorAll('[data-counter]')].map((card) => ({
        name: card.dataset.counter,
        state: card.dataset.state,
        count: text(card, 'count'),
        expected: text(card, 'expected'),
        done: text(card, 'done'),
      })),
      threads: [...document.querySelectorAll('#threads li')].map((row) => `${text(row, 'name')} ${row.dataset.state}`),
      waits: document.getElementById('waits').textContent,
    });
  }).observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
};

/** One open page. `errors` has the errors of its scripts and its console. */
exports.CounterPage = class CounterPage {
  errors = [];

  static async open(browser, url, options) {
    const counterPage = new CounterPage();
    counterPage.page = await browser.newPage(options);
    counterPage.page.setDefaultTimeout(LIMIT_MS);
    counterPage.page.on('pageerror', (error) => counterPage.errors.push(error.message));
    counterPage.page.on('console', (message) => {
      if (message.type() === 'error') counterPage.errors.push(message.text());
    });
    await counterPage.page.addInitScript(record);
    await counterPage.page.goto(url);
    await counterPage.isConnected();
    return counterPage;
  }

  isConnected() {
    return this.page.waitForSelector('.increment:enabled');
  }

  card(counter) {
    return this.page.locator(`[data-counter="${counter}"]`);
  }

  /** Presses a button once: 'increment' or 'decrement'. */
  press(counter, direction) {
    return this.card(counter).locator(`.${direction}`).click();
  }

  /** Returns what the card shows now. */
  async show(counter) {
    const text = (name) => this.card(counter).locator(`.${name}`).textContent();
    const state = await this.card(counter).getAttribute('data-state');
    const [count, expected, difference, done] = await Promise.all(
      ['count', 'expected', 'difference', 'done'].map(text),
    );
    return { state, count: toNumber(count), expected: toNumber(expected), difference: toNumber(difference), done };
  }

  /** Waits until this number of changes has been requested, by any page, and made. Returns what the card shows then. */
  async finished(counter, changes) {
    const all = changes.toLocaleString('en');
    const done = this.page.locator('.done', { hasText: new RegExp(`^${all} of ${all}$`) });
    await this.page.locator(`[data-counter="${counter}"]:not([data-state="running"])`).filter({ has: done }).waitFor();
    return this.show(counter);
  }

  /** Waits until the status is this text. */
  says(text) {
    return this.page.locator('#status').getByText(text, { exact: true }).waitFor();
  }

  /** Resets all counters, which the page allows only while no worker runs. */
  async reset() {
    await this.page.locator('#reset:enabled').click();
    await this.isReset();
  }

  async isReset() {
    const cards = await this.page.locator('[data-counter]').all();
    await Promise.all(cards.map((card) => card.locator('.done', { hasText: /^0 of 0$/ }).waitFor()));
  }

  /** Everything that the page has shown since it was loaded, with numbers for a counter's count. */
  async seen(counter) {
    const seen = await this.page.evaluate(() => window.seen);
    return seen.map(({ counters, threads, waits }) => {
      const { state, count } = counters.find(({ name }) => name === counter) ?? { count: '' };
      return { state, count: toNumber(count), threads, waits };
    });
  }
};
