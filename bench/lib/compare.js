'use strict';
// Sets rows beside each other: how far each is from the plain mutex and from its limit, and which goals are reached.

const { median } = require('./stats');

/**
 * Two rows, round by round, and the median of that: rounds of the same number ran one after the other, so that what
 * else the machine did has touched both. Percentiles, which are of all rounds together, have but one value each.
 */
function against(row, other, { key, percentile }, relate) {
  if (other === undefined) return NaN;
  if (percentile !== undefined) return relate(row.values[key], other.values[key]);
  const both = Math.min(row.rounds.length, other.rounds.length);
  return median(row.rounds.slice(0, both).map((round, i) => relate(round[key], other.rounds[i][key])));
}

const ratioOf = (a, b) => a / b;
const differenceOf = (a, b) => a - b;

/** Adds to each row `versus: { [metric]: { plain, limit, beside } }`: two ratios and the difference to the limit. */
function compare({ metrics, rows }) {
  for (const row of rows) {
    const peers = rows.filter((other) => other.case === row.case);
    const plain = peers.find((other) => other.contender === 'plain' && !other.failure);
    const limit = peers.find((other) => other.limit && !other.failure);
    row.versus = {};
    for (const metric of metrics) {
      if (!metric.ratio || !Number.isFinite(row.values[metric.key])) continue;
      row.versus[metric.key] = {
        plain: against(row, plain, metric, ratioOf),
        limit: against(row, limit, metric, ratioOf),
        beside: against(row, limit, metric, differenceOf),
      };
    }
  }
}

/** What the project wants of sablock's rows: `[{ case, text, value, reached }]`. */
function judgeGoals({ metrics, rows }) {
  const verdicts = [];
  for (const row of rows) {
    for (const { metric, versus, atMost, atLeast } of row.goals ?? []) {
      const { label } = metrics.find(({ key }) => key === metric);
      const value = versus ? row.versus[metric]?.[versus] : row.values[metric];
      const reached = atMost === undefined ? value >= atLeast : value <= atMost;
      const bound = atMost === undefined ? `>= ${atLeast}` : `<= ${atMost}`;
      const unit = { plain: ' x plain', limit: ' x limit', beside: ' beside the limit' }[versus] ?? '';
      verdicts.push({ case: row.case, text: `${label} ${bound}${unit}`, value, reached });
    }
  }
  return verdicts;
}

/** What makes the run end non-zero: wrong results, unless known of that contender; any failure of sablock; a limit's error. */
function problems({ name, absent, rows }) {
  const found = [];
  for (const [contender, reason] of Object.entries(absent)) {
    if (contender.startsWith('sablock') || contender === 'plain')
      found.push(`${name}: ${contender} is unavailable: ${reason}`);
  }
  for (const { case: caseName, contender, limit, failure } of rows) {
    if (!failure) continue;
    const own = contender.startsWith('sablock') || ((contender === 'plain' || limit) && failure.kind === 'error');
    const serious = own || (failure.kind === 'wrong' && !failure.known);
    if (serious) found.push(`${name}, ${caseName}: ${contender}: ${failure.kind}: ${failure.text}`);
  }
  return found;
}

module.exports = { compare, judgeGoals, problems };
