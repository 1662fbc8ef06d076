'use strict';
// The tables on the terminal.

function number(value, digits) {
  if (!Number.isFinite(value)) return '-';
  if (digits !== undefined) return value.toFixed(digits);
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

function columnsOf(scenario) {
  const columns = [];
  const hasLimit = scenario.rows.some((row) => row.limit);
  for (const { key, label, digits, ratio, minus } of scenario.metrics) {
    columns.push({ head: label, cell: (row) => number(row.values[key], digits) });
    if (!ratio) continue;
    columns.push({ head: 'x plain', cell: (row) => number(row.versus[key]?.plain, 2) });
    if (!hasLimit) continue;
    columns.push(
      minus
        ? { head: '- limit', cell: (row) => (row.limit ? '' : number(row.versus[key]?.beside, digits)) }
        : { head: 'x limit', cell: (row) => number(row.versus[key]?.limit, 2) },
    );
  }
  return columns;
}

/** The head and one line for each row, as arrays of strings. */
function cells(scenario) {
  const columns = columnsOf(scenario);
  const head = ['case', 'contender', ...columns.map(({ head }) => head)];
  let last;
  const lines = scenario.rows.map((row) => {
    const name = row.case === last ? '' : row.case;
    last = row.case;
    const label = row.limit ? `[${row.contender}]` : row.contender;
    if (row.failure) return [name, label, `${row.failure.kind}: ${row.failure.text.split('\n')[0]}`];
    return [name, label, ...columns.map(({ cell }) => cell(row))];
  });
  return [head, ...lines];
}

function format(lines) {
  const widths = [];
  for (const line of lines) {
    if (line.length < lines[0].length) continue;
    line.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, cell.length);
    });
  }
  for (const line of lines) {
    for (const i of [0, 1]) widths[i] = Math.max(widths[i], line[i].length);
  }
  const text = lines.map((line) =>
    line
      .map((cell, i) => (i < 2 || line.length < lines[0].length ? cell.padEnd(widths[i]) : cell.padStart(widths[i])))
      .join('  ')
      .trimEnd(),
  );
  text.splice(1, 0, widths.map((width) => '-'.repeat(width)).join('  '));
  return text.join('\n');
}

const table = (scenario) => `\n${scenario.title} (${scenario.name})\n\n${format(cells(scenario))}\n`;

function goalsTable(verdicts) {
  const lines = [['goal', 'case', 'value', 'reached']];
  for (const { case: name, text, value, reached } of verdicts)
    lines.push([text, name, number(value), reached ? 'yes' : 'NO']);
  return `\nThe goals of the design\n\n${format(lines)}\n`;
}

module.exports = { format, number, table, goalsTable };
