'use strict';
// Writes the page with the charts: one file that needs nothing else, made of the run's data, Chart.js, and
// report-page.js, which draws.

const fs = require('node:fs');
const path = require('node:path');
const machine = require('./machine');
const { notes } = require('./table');

/** Found before anything is measured, so that a run does not end in an error for want of it. */
function chartLibrary() {
  try {
    return path.join(path.dirname(require.resolve('chart.js')), 'chart.umd.min.js');
  } catch {
    throw new Error('--report draws with chart.js, which is not installed: run npm ci --prefix bench');
  }
}

const escapeText = (text) =>
  text.replace(/[&<>"]/g, (char) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[char]);

/** Code or data inside a <script>: nothing in it may end the element. */
const escapeScript = (text) => text.replace(/<\/(script)/gi, '<\\/$1').replace(/<!--/g, '<\\!--');
const escapeJson = (value) => JSON.stringify(value).replace(/</g, '\\u003c');

const STYLE = `
  :root { color-scheme: light dark; --line: light-dark(#ccc, #3a3f4a); background: light-dark(#fff, #16181d); color: light-dark(#222, #e6e8ed) }
  body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2rem auto; padding: 0 1rem }
  h1 { font-size: 1.6rem } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line) } h3 { font-size: 1rem; margin-bottom: 0 }
  .chart { position: relative; height: 340px; margin: 1rem 0 }
  .small { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(340px, 100%), 1fr)); gap: 1rem }
  .small .chart { height: 260px }
  @media (max-width: 40rem) { .chart, .small .chart { height: 420px } }
  .note { color: light-dark(#555, #a8aebb) }
  .scroll { overflow-x: auto }
  table { border-collapse: collapse; font-size: 13px }
  th, td { padding: 2px 10px; text-align: right; white-space: nowrap } th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left }
  tr.first td { border-top: 1px solid var(--line) } tr.limit { color: light-dark(#6a6a6a, #9aa0ab) } td.failure { text-align: left; color: light-dark(#b00, #ff9a90) } tr.own { font-weight: 600 }
`;

const withNotes = (scenario) => ({ ...scenario, notes: notes(scenario) });

function page(run, library) {
  const own = fs.readFileSync(path.join(__dirname, 'report-page.js'), 'utf8');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>sablock bench</title>
<style>${STYLE}</style>
</head>
<body>
<h1>sablock bench</h1>
<p class="note">${escapeText(machine.line(run.machine)).replace('\n', '<br>')}<br>${escapeText(run.machine.date)}</p>
${run.short ? '<p><strong>A short pass: it checks results, its times mean little.</strong></p>' : ''}
<main></main>
<script id="run" type="application/json">${escapeJson({ ...run, scenarios: run.scenarios.map(withNotes) })}</script>
<script>${escapeScript(fs.readFileSync(library, 'utf8'))}</script>
<script>${escapeScript(own)}</script>
</body>
</html>
`;
}

const writeReport = (run, file) => fs.writeFileSync(file, page(run, chartLibrary()));

module.exports = { chartLibrary, writeReport };
