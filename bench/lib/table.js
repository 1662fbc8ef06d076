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
  const hasPlain = scenario.rows.some((row) => row.contender === 'plain');
  for (const { key, label, digits, ratio, minus } of scenario.metrics) {
    columns.push({ head: label, cell: (row) => number(row.values[key], digits) });
    if (!ratio) continue;
    if (hasPlain) columns.push({ head: 'x plain', cell: (row) => number(row.versus[key]?.plain, 2) });
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

/** Explains the heads of the columns, as far as they do not say it themselves. */
function notes({ metrics, rows, limitIs = 'which does only what no lock can do without' }) {
  const shown = metrics.filter(({ ratio }) => ratio);
  const [limit] = new Set(rows.filter((row) => row.limit).map(({ contender }) => contender));
  return [
    rows.some(({ contender }) => contender === 'plain') &&
      shown.length &&
      'x plain: times the figure of the plain mutex in the same round',
    limit && shown.some(({ minus }) => !minus) && `x limit: times the figure of the first row in brackets, ${limitIs}`,
    limit && shown.some(({ minus }) => minus) && `- limit: less the figure of the first row in brackets, ${limitIs}`,
    ...metrics.map(({ note }) => note),
  ].filter(Boolean);
}

function table(scenario) {
  const lines = [`${scenario.title} (${scenario.name})`, format(cells(scenario)), notes(scenario).join('\n')];
  return `\n${lines.filter(Boolean).join('\n\n')}\n`;
}

/** Returns the table of `against` in compare.js. */
function againstTable({ name, title }, label, compared) {
  const lines = [['case', 'what', 'now', label, 'ratio', 'rounds', 'verdict']];
  let last;
  for (const row of compared) {
    const values = [number(row.now, row.digits), number(row.other, row.digits), number(row.ratio, 2)];
    const rounds = `${number(row.low, 2)} to ${number(row.high, 2)}`;
    lines.push([row.case === last ? '' : row.case, row.metric, ...values, rounds, row.verdict]);
    last = row.case;
  }
  return `\n${title} (${name}), beside ${label}\n\n${format(lines)}\n`;
}

function goalsTable(verdicts) {
  const lines = [['goal', 'case', 'value', 'reached']];
  for (const { case: name, text, value, reached } of verdicts)
    lines.push([text, name, number(value), reached ? 'yes' : 'NO']);
  return `\nThe goals of the design\n\n${format(lines)}\n`;
}

module.exports = { format, number, notes, table, againstTable, goalsTable };
