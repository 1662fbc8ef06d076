'use strict';
// npm run bench:core [-- FILTER or criterion's options]: the Rust core beside parking_lot and std, measured by criterion,
// and what it found as one table.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { format, number } = require('./lib/table');

const ROOT = path.join(__dirname, '..');
const RESULTS = path.join(ROOT, 'target', 'criterion');

/** Returns what criterion has written since `start`, in the order in which it did. */
function results(start) {
  if (!fs.existsSync(RESULTS)) return [];
  return fs
    .readdirSync(RESULTS, { recursive: true })
    .filter((file) => file.endsWith(path.join('new', 'estimates.json')))
    .map((file) => ({
      folder: path.dirname(path.join(RESULTS, file)),
      at: fs.statSync(path.join(RESULTS, file)).mtimeMs,
    }))
    .filter(({ at }) => at >= start)
    .sort((a, b) => a.at - b.at)
    .map(({ folder }) => {
      const read = (name) => JSON.parse(fs.readFileSync(path.join(folder, name), 'utf8'));
      const { group_id: group, function_id: name, throughput } = read('benchmark.json');
      return {
        group,
        name: name ?? '',
        ns: read('estimates.json').median.point_estimate / (throughput?.Elements ?? 1),
      };
    });
}

/** Nanoseconds for each hold, wait or round trip, and the ratio to the first of its group. */
function table(rows) {
  const lines = [['group', 'what', 'ns', 'x first']];
  let first;
  for (const row of rows) {
    const begins = row.group !== first?.group;
    if (begins) first = row;
    lines.push([begins ? row.group : '', row.name, number(row.ns), number(row.ns / first.ns, 2)]);
  }
  return format(lines);
}

const start = Date.now();
const args = ['bench', '--package', 'sablock-bench-core', '--bench', 'core', '--', ...process.argv.slice(2)];
const env = { ...process.env, CRITERION_HOME: RESULTS };
const { status, error } = spawnSync('cargo', args, { cwd: ROOT, env, stdio: 'inherit' });
if (error) throw error;
const rows = results(start);
if (rows.length) console.log(`\n${table(rows)}`);
process.exitCode = status ?? 1;
