'use strict';
// The README's figures of a run: a small table and a picture, made of the run's data.

const fs = require('node:fs');
const path = require('node:path');
const { number } = require('./table');

const DOCS = path.join(__dirname, '..', '..', 'docs');

/** The rows with a `panel` are in the picture too; `hasPlain: false`: the plain mutex is no package that could be compared. */
const FIGURES = [
  ['uncontended', 'lock+unlock', 'ns', { text: 'lock and unlock, uncontended', unit: 'ns', panel: true }],
  ['uncontended', 'await lockAsync+unlock', 'ns', { text: '`await lockAsync()` and unlock, uncontended', unit: 'ns' }],
  ['contended', '4 workers, 20 µs', 'rate', { text: '4 workers, holds of 20 µs', unit: 'holds/ms', panel: true }],
  ['contended', '16 workers, 20 µs', 'longest', { text: '16 workers: longest wait', unit: 'ms', panel: true }],
  [
    'starvation',
    '2 workers, 20 µs',
    'worst',
    { text: 'main awaits, 2 workers loop: worst wait', unit: 'ms', panel: true },
  ],
  [
    'long-turns',
    'turns of 20 ms, 1 ms holds',
    'p50',
    { text: 'main busy for 20 ms at a time: median wait', unit: 'turns' },
  ],
  ['handover', 'worker to worker', 'p50', { text: 'handover to a sleeping worker', unit: 'µs', panel: true }],
  [
    'pending',
    '100,000: hand on',
    'end',
    { text: '100,000 pending `lockAsync`: each handed on', unit: 'ns', panel: true },
  ],
  [
    'load',
    'in a fresh process',
    'ms',
    { text: "`require('sablock')` in a fresh process; last: an empty module", unit: 'ms', hasPlain: false },
  ],
];

/** The figures of the guide *Locks among machines*: a picture, with each contender. */
const OF_STORES = ['postgres', 'redis', 'etcd'].flatMap((kind) =>
  [
    ['nobody else wants it', `${kind}: a lock that nobody else wants`],
    ['handover', `${kind}: from one process to another`],
  ].map(([name, text]) => ['stores', `${kind}: ${name}`, 'p50', { text, unit: 'median ms', panel: true, all: true }]),
);

const shownScenarios = [...new Set(FIGURES.map(([scenario]) => scenario))];
const isShown = (scenario, name) => FIGURES.some((figure) => figure[0] === scenario && figure[1] === name);

/** `[{ text, unit, panel, better, rows: [{ contender, limit, value }] }]` of the figures that the run has. */
function figuresOf(run, shown) {
  const figures = shown.map(([scenario, name, key, figure]) => {
    const result = run.scenarios.find((result) => result.name === scenario);
    const rows = (result?.rows ?? [])
      .filter((row) => row.case === name && !row.contender.startsWith('sablock@'))
      .map(({ contender, limit, values }) => ({ contender, limit, value: values[key] }))
      .filter(({ value }) => Number.isFinite(value));
    // The first limit is the one that the ratios are of.
    const [limit] = rows.filter((row) => row.limit);
    const better = result?.metrics.find((metric) => metric.key === key).better;
    const others = figure.all ? rows.map((row) => ({ ...row, limit: row === limit })) : rows;
    return { ...figure, better, rows: others.filter((row) => !row.limit || row.contender === limit.contender) };
  });
  return figures.filter(({ rows }) => rows.some(({ contender }) => contender === 'sablock'));
}

function markdown(run, figures) {
  const of = ({ rows }, name) => {
    const row = rows.find(({ contender, limit }) => (name === undefined ? limit : contender === name));
    return row ? number(row.value) : '-';
  };
  const lines = figures.map((figure) => {
    const unit = `${figure.unit}${figure.better === 'higher' ? ', more is better' : ''}`;
    return `| ${figure.text} (${unit}) | ${of(figure, 'sablock')} | ${figure.hasPlain === false ? '-' : of(figure, 'plain')} | ${of(figure)} |`;
  });
  const { node, system, cpu, cores, commit } = run.machine;
  return [
    '| | sablock | plain mutex | no lock can beat |',
    '|---|---|---|---|',
    ...lines,
    '',
    `Node.js ${node.slice(1)}, ${system}, ${cores} cores of ${cpu}, commit ${commit}. The plain mutex has three states over`,
    '`Atomics`; the last column does only what no lock can do without.',
    '',
  ].join('\n');
}

const WIDTH = 400;
const LABEL = 170;
const VALUE = 60;
const BAR = { height: 14, step: 20 };

// Colours of its own in the light and in the dark, as an image on a page cannot take the page's.
const STYLE = `
  text { font: 12px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #1f2328 }
  .title { font-weight: 600 } .note { fill: #59636e }
  .own { fill: #1668dc } .other { fill: #d9822b } .limit { fill: #9aa0a6 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e8ed } .note { fill: #9aa4b2 }
    .own { fill: #5b9dff } .other { fill: #f0a35e } .limit { fill: #6b7078 }
  }`;

const escapeText = (text) => text.replace(/[&<>]/g, (char) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[char]);

function label(x, y, text, className) {
  return `<text x="${x}" y="${y}"${className ? ` class="${className}"` : ''}>${escapeText(text)}</text>`;
}

const panelHeight = ({ rows }) => 52 + rows.length * BAR.step;

function panel({ text, unit, better, rows }, x, y) {
  const largest = Math.max(...rows.map(({ value }) => value));
  const room = WIDTH - LABEL - VALUE - 20;
  const bars = rows.flatMap(({ contender, limit, value }, i) => {
    const top = y + 40 + i * BAR.step;
    const width = Math.max(1, (room * value) / largest).toFixed(1);
    const kind = limit ? 'limit' : contender === 'sablock' ? 'own' : 'other';
    const name = contender.length > 25 ? `${contender.slice(0, 24)}…` : contender;
    return [
      label(x, top + 11, name),
      `<rect x="${x + LABEL}" y="${top}" width="${width}" height="${BAR.height}" rx="2" class="${kind}"/>`,
      label(x + LABEL + Number(width) + 6, top + 11, number(value)),
    ];
  });
  const direction = `${unit}; ${better === 'higher' ? 'more' : 'less'} is better`;
  return [label(x, y + 14, text.replaceAll('`', ''), 'title'), label(x, y + 30, direction, 'note'), ...bars];
}

function picture(run, figures) {
  const panels = figures.filter((figure) => figure.panel);
  const marks = [];
  let y = 10;
  for (let i = 0; i < panels.length; i += 2) {
    const line = panels.slice(i, i + 2);
    line.forEach((figure, column) => {
      marks.push(...panel(figure, 10 + column * (WIDTH + 20), y));
    });
    y += Math.max(...line.map(panelHeight));
  }
  marks.push(
    label(
      10,
      y + 8,
      `Grey: what no lock can do without. Node.js ${run.machine.node.slice(1)}, ${run.machine.cores} cores`,
      'note',
    ),
  );
  const [width, height] = [2 * WIDTH + 40, y + 20];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    '<title>sablock beside other locks</title>',
    `<style>${STYLE}\n</style>`,
    ...marks,
    '</svg>',
    '',
  ].join('\n');
}

/** Writes those that the run has; returns their names. */
function writeFigures(run, folder = DOCS) {
  const [own, ofStores] = [FIGURES, OF_STORES].map((shown) => figuresOf(run, shown));
  const files = {
    ...(own.length && { 'bench.md': markdown(run, own), 'bench.svg': picture(run, own) }),
    ...(ofStores.length && { 'guides/images/stores.svg': picture(run, ofStores) }),
  };
  if (Object.keys(files).length === 0) throw new Error('--figures: this run has none of the cases that are shown');
  return Object.entries(files).map(([name, text]) => {
    const file = path.join(folder, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
    return path.relative(process.cwd(), file);
  });
}

module.exports = { isShown, shownScenarios, writeFigures };
