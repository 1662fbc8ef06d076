'use strict';
// Runs in the browser, inside the report: draws the run's data with Chart.js.
/* global Chart, document, location, matchMedia */

const run = JSON.parse(document.getElementById('run').textContent);
const main = document.querySelector('main');

const COLOURS = {
  sablock: '#1668dc',
  plain: '#e8710a',
  multithreading: '#188038',
  'async-mutex': '#9334e6',
  locks: '#c5221f',
  'atomics-mutex': '#00838f',
  'rocicorp-lock': '#795548',
  'async-rwlock': '#ad1457',
  'async-sema': '#827717',
};
const SPARE = ['#5d4037', '#d81b60', '#616161'];
const LIMITS = ['#9aa0a6', '#6b7078', '#c4c8cd'];
const limits = [];
let spare = 0;

const dark = matchMedia('(prefers-color-scheme: dark)');
Chart.defaults.color = dark.matches ? '#b4bac6' : '#555';
Chart.defaults.borderColor = dark.matches ? '#3a3f4a' : '#e2e2e2';
dark.addEventListener('change', () => location.reload()); // charts do not take new colours by themselves

function colour(row) {
  if (row.limit) {
    if (!limits.includes(row.contender)) limits.push(row.contender);
    return LIMITS[limits.indexOf(row.contender) % LIMITS.length];
  }
  COLOURS[row.contender] ??= SPARE[spare++ % SPARE.length];
  return COLOURS[row.contender];
}

function add(parent, tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  parent.append(element);
  return element;
}

const short = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(3))) : '-');
const ratio2 = (value) => (Number.isFinite(value) ? value.toFixed(2) : '-');
const unique = (values) => [...new Set(values)];

/** On a logarithmic axis only the powers of ten get a label, on a short one twice and five times them too. */
const logarithmicLabels = (values) => {
  const labelled = Math.max(...values) < 100 * Math.min(...values) ? [1, 2, 5] : [1];
  return (value) => (labelled.includes(Number(value.toExponential(3).split('e')[0])) ? short(value) : '');
};

/** A logarithmic axis begins at a power of ten below all values, so that the smallest has a bar too. */
function axis(title, values) {
  const logarithmic = values !== undefined;
  const positive = logarithmic && values.filter((value) => value > 0);
  const least = logarithmic && Math.min(...positive);
  return {
    type: logarithmic ? 'logarithmic' : 'linear',
    beginAtZero: !logarithmic,
    min: logarithmic ? 10 ** Math.floor(Math.log10(least * 0.9)) : undefined,
    title: { display: true, text: title },
    ticks: logarithmic ? { callback: logarithmicLabels(positive), autoSkip: false } : {},
  };
}

function draw(parent, config) {
  const canvas = add(add(parent, 'div', undefined, 'chart'), 'canvas');
  const { options = {}, ...rest } = config;
  return new Chart(canvas, { ...rest, options: { animation: false, maintainAspectRatio: false, ...options } });
}

/** For each case a group of bars, one for each contender. */
function bars(parent, { rows }, metric, logarithmic) {
  const shown = rows.filter((row) => !row.failure && row.values[metric.key] > 0);
  if (shown.length === 0) return;
  const cases = unique(shown.map((row) => row.case));
  const datasets = unique(shown.map((row) => row.contender)).map((contender) => {
    const own = shown.filter((row) => row.contender === contender);
    return {
      label: own[0].limit ? `limit: ${contender}` : contender,
      backgroundColor: colour(own[0]),
      skipNull: true,
      data: cases.map((name) => own.find((row) => row.case === name)?.values[metric.key] ?? null),
    };
  });
  draw(parent, {
    type: 'bar',
    data: { labels: cases, datasets },
    options: {
      scales: {
        y: axis(
          metric.label + (logarithmic ? ' (log)' : ''),
          logarithmic ? shown.map((row) => row.values[metric.key]) : undefined,
        ),
      },
      plugins: { legend: { position: 'bottom' } },
    },
  });
}

/** Each worker's own longest wait as a dot: who was left behind, and how far. */
function dots(parent, { rows }) {
  const shown = rows.filter((row) => row.rounds.some((round) => round.details?.longestWaits));
  if (shown.length === 0) return;
  const cases = unique(shown.map((row) => row.case));
  const contenders = unique(shown.map((row) => row.contender));
  const waitsOf = (row) => row.rounds.flatMap((round) => round.details.longestWaits).filter((ms) => ms > 0);
  const datasets = contenders.map((contender, i) => {
    const own = shown.filter((row) => row.contender === contender);
    const beside = (i - (contenders.length - 1) / 2) * (0.7 / contenders.length);
    return {
      label: contender,
      backgroundColor: `${colour(own[0])}80`,
      borderColor: colour(own[0]),
      pointRadius: 3,
      data: own.flatMap((row) => waitsOf(row).map((y) => ({ x: cases.indexOf(row.case) + beside, y }))),
    };
  });
  const x = {
    min: -0.5,
    max: cases.length - 0.5,
    afterBuildTicks: (scale) => {
      scale.ticks = cases.map((_, value) => ({ value }));
    },
    ticks: { callback: (value) => cases[value] ?? '', autoSkip: false },
  };
  draw(parent, {
    type: 'scatter',
    data: { datasets },
    options: {
      scales: { x, y: axis('ms (log)', shown.flatMap(waitsOf)) },
      plugins: { legend: { position: 'bottom' } },
    },
  });
}

/** The distribution of one case: time over percentile, both stretched so that the slow end is seen. */
function curves(parent, rows, name, unit = 'ms') {
  const shown = rows.filter((row) => row.curve);
  const labels = unique(shown.flatMap((row) => row.curve.map(([p]) => p))).sort((a, b) => a - b);
  draw(parent, {
    type: 'line',
    data: {
      labels: labels.map((p) => (p === 100 ? 'worst' : p === 0 ? 'best' : `p${p}`)),
      datasets: shown.map((row) => ({
        label: row.contender,
        borderColor: colour(row),
        backgroundColor: colour(row),
        borderDash: row.limit ? [6, 4] : undefined,
        borderWidth: 2,
        pointRadius: 2,
        spanGaps: true,
        data: labels.map((p) => (row.curve.find(([at]) => at === p)?.[1] ?? NaN) / 1e6),
      })),
    },
    options: {
      scales: {
        y: axis(
          `${unit} (log)`,
          shown.flatMap((row) => row.curve.map(([, ns]) => ns / 1e6)),
        ),
      },
      plugins: { title: { display: true, text: name }, legend: { position: 'bottom' } },
    },
  });
}

function table(parent, { rows, metrics }) {
  const element = add(add(parent, 'div', undefined, 'scroll'), 'table');
  const head = add(element, 'tr');
  const hasLimit = rows.some((row) => row.limit);
  const hasPlain = rows.some((row) => row.contender === 'plain');
  const comparisons = (minus) => [
    ...(hasPlain ? ['x plain'] : []),
    ...(hasLimit ? [minus ? '- limit' : 'x limit'] : []),
  ];
  const heads = metrics.flatMap(({ label, ratio, minus }) => (ratio ? [label, ...comparisons(minus)] : [label]));
  for (const text of ['case', 'contender', ...heads]) add(head, 'th', text);
  let last;
  for (const row of rows) {
    const line = add(
      element,
      'tr',
      undefined,
      [row.case !== last && 'first', row.limit && 'limit', row.contender === 'sablock' && 'own']
        .filter(Boolean)
        .join(' '),
    );
    add(line, 'td', row.case === last ? '' : row.case);
    add(line, 'td', row.limit ? `[${row.contender}]` : row.contender);
    last = row.case;
    if (row.failure) {
      add(line, 'td', `${row.failure.kind}: ${row.failure.text.split('\n')[0]}`, 'failure').colSpan = heads.length;
      continue;
    }
    for (const { key, ratio, minus } of metrics) {
      add(line, 'td', short(row.values[key]));
      if (!ratio) continue;
      if (hasPlain) add(line, 'td', ratio2(row.versus[key]?.plain));
      if (!hasLimit) continue;
      add(
        line,
        'td',
        row.limit && minus ? '' : minus ? short(row.versus[key]?.beside) : ratio2(row.versus[key]?.limit),
      );
    }
  }
}

/** A logarithmic axis where the values lie further apart than a linear one can show. */
function spread({ rows }, { key }) {
  const values = rows.map((row) => row.values[key]).filter((value) => value > 0);
  return Math.max(...values) > 50 * Math.min(...values);
}

const drawn = (scenario) => scenario.metrics.filter((metric) => metric.chart === 'log');

const longest = run.scenarios.filter((scenario) => drawn(scenario).length);
if (longest.length) {
  add(main, 'h2', 'Longest waits');
  add(main, 'p', 'The longest that anybody waited in all rounds. Logarithmic: a step is ten times as long.', 'note');
  for (const scenario of longest) {
    for (const metric of drawn(scenario)) {
      add(main, 'h3', scenario.title);
      bars(main, scenario, metric, true);
    }
  }
}

for (const scenario of run.scenarios) {
  add(main, 'h2', scenario.title);
  if (scenario.rows.some((row) => row.rounds.some((round) => round.details))) {
    add(main, 'p', "Each worker's longest wait in each round, a dot each.", 'note');
    dots(main, scenario);
  }
  for (const metric of scenario.metrics.filter(({ ratio, chart }) => ratio || chart)) {
    if (!drawn(scenario).includes(metric)) bars(main, scenario, metric, spread(scenario, metric));
  }
  if (scenario.rows.some((row) => row.curve)) {
    const small = add(main, 'div', undefined, 'small');
    for (const name of unique(scenario.rows.map((row) => row.case)))
      curves(
        small,
        scenario.rows.filter((row) => row.case === name),
        name,
        scenario.unit,
      );
  }
  table(main, scenario);
  for (const note of scenario.notes) add(main, 'p', note, 'note');
  for (const [contender, reason] of Object.entries(scenario.absent))
    add(main, 'p', `${contender}: not available: ${reason.split('\n')[0]}`, 'note');
}
