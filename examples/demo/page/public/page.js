// Shows what the server sends, and requests starts and resets. It keeps no state of its own, so another page, or a reload,
// shows the same.

const EXPLANATIONS = {
  'no lock': 'Read, work, write. Two threads read the same value, and the change of one of them is lost.',
  Atomics: 'Work, then Atomics.add. Exact, but only for one operation on one number.',
  mutex: 'Lock, read, work, write, unlock. Exact, for any change of any amount of data under the lock.',
};

const byId = (id) => document.getElementById(id);
const wholeNumber = (value) => Math.round(value).toLocaleString('en').replace('-', '−');
const titled = (name) => name[0].toUpperCase() + name.slice(1);
const cards = new Map();
const rows = [];
let wasRunning = false;

const fill = (parent, values) => {
  for (const [name, text] of Object.entries(values)) {
    const element = parent.querySelector(`.${name}`);
    if (element.textContent !== text) element.textContent = text;
  }
};

const say = (text) => {
  if (byId('status').textContent !== text) byId('status').textContent = text;
};

const ask = async (path) => {
  try {
    const response = await fetch(path, { method: 'POST' });
    if (!response.ok) say(await response.text());
  } catch {
    say('The server does not respond.');
  }
};

const copyOf = (template, parent) => {
  parent.append(byId(template).content.cloneNode(true));
  return parent.lastElementChild;
};

const createCard = (name) => {
  const card = copyOf('counter', byId('counters'));
  const title = card.querySelector('h2');
  title.id = `counter-${cards.size}`;
  title.textContent = titled(name);
  card.dataset.counter = name;
  card.setAttribute('aria-labelledby', title.id);
  card.querySelector('progress').setAttribute('aria-label', `${titled(name)}: changes made`);
  fill(card, { explanation: EXPLANATIONS[name] });
  for (const [direction, by] of [
    ['increment', 1],
    ['decrement', -1],
  ]) {
    const button = card.querySelector(`.${direction}`);
    button.setAttribute('aria-describedby', title.id);
    button.addEventListener('click', () => ask(`start?${new URLSearchParams({ counter: name, by })}`));
  }
  return card;
};

const stateOf = ({ isRunning, started, count, expected }) => {
  if (isRunning) return 'running';
  if (started === 0) return 'ready';
  return count === expected ? 'exact' : 'wrong';
};

const showCounter = (counter) => {
  const { name, count, expected, started, done, isRunning, ms } = counter;
  if (!cards.has(name)) cards.set(name, createCard(name));
  const card = cards.get(name);
  const state = stateOf(counter);
  card.dataset.state = state;
  const progress = card.querySelector('progress');
  progress.max = started || 1;
  progress.value = done;
  fill(card, {
    verdict: state,
    count: wholeNumber(count),
    expected: wholeNumber(expected),
    difference: isRunning ? '…' : wholeNumber(Math.abs(expected - count)),
    done: `${wholeNumber(done)} of ${wholeNumber(started)}`,
    time: `${wholeNumber(ms)} ms`,
  });
};

const showThread = ({ name, state, waitedMs }, index) => {
  rows[index] ??= copyOf('thread', byId('threads'));
  rows[index].dataset.state = state;
  const text = waitedMs === undefined ? state : `${state}, ${waitedMs.toFixed(1)} ms`;
  fill(rows[index], { name, state: text });
};

const waitsOf = (threads) => {
  const count = (state) => threads.filter((thread) => thread.state === state).length;
  const holder = threads.find(({ state }) => state === 'holds');
  return `Holder: ${holder?.name ?? 'none'}. Waits: ${count('blocked')} blocked, ${count('awaits')} awaiting.`;
};

/** One sentence for each counter that has run, for screen readers. */
const summaryOf = (counters) =>
  counters
    .filter(({ started }) => started > 0)
    .map(({ name, count, expected }) => {
      const verdict = count === expected ? 'exact' : `off by ${wholeNumber(Math.abs(expected - count))}`;
      return `${titled(name)}: ${wholeNumber(count)}, ${verdict}.`;
    })
    .join(' ') || 'Ready.';

const enable = (isConnected, isRunning) => {
  for (const button of document.querySelectorAll('#counters button')) button.disabled = !isConnected;
  byId('reset').disabled = !isConnected || isRunning;
};

byId('reset').addEventListener('click', () => ask('reset'));

const events = new EventSource('events');
events.addEventListener('message', ({ data }) => {
  const { isRunning, counters, threads } = JSON.parse(data);
  counters.forEach(showCounter);
  threads.forEach(showThread);
  byId('waits').textContent = waitsOf(threads);
  if (isRunning) say('The workers are running.');
  else say(wasRunning ? `Done. ${summaryOf(counters)}` : summaryOf(counters));
  wasRunning = isRunning;
  enable(true, isRunning);
});
events.addEventListener('error', () => {
  say('The connection to the server is lost; trying again.');
  enable(false, false);
});
