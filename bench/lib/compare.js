'use strict';
// Sets rows beside each other: how far each is from the plain mutex, from its limit and from another build, and which goals
// are reached.

const { median } = require('./stats');

/**
 * Two rows, round by round, and the median of that: rounds of the same number ran one after the other, so that what
 * else the machine did has touched both. Percentiles, which are of all rounds together, have but one value each.
 */
function relate(row, other, { key, percentile }, by) {
  if (other === undefined) return NaN;
  if (percentile !== undefined) return by(row.values[key], other.values[key]);
  const both = Math.min(row.rounds.length, other.rounds.length);
  return median(row.rounds.slice(0, both).map((round, i) => by(round[key], other.rounds[i][key])));
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
        plain: relate(row, plain, metric, ratioOf),
        limit: relate(row, limit, metric, ratioOf),
        beside: relate(row, limit, metric, differenceOf),
      };
    }
  }
}

/** Less than this, in ratios, does not count. */
const TOLERANCE = 0.03;
/** With fewer rounds, ratios that all lie on one side are too likely by chance. */
const LEAST_ROUNDS = 5;

/**
 * Each figure of sablock beside that of another build of it: `[{ case, metric, now, other, ratio, low, high, rounds, verdict }]`.
 * The ratio is `now / other` in the median of the rounds, `low` and `high` its extremes. `verdict`: `worse` or `better` if
 * all rounds agree and the ratio is not tiny, `few rounds` if there are too few to say so, else `same`.
 */
function against({ metrics, rows }, label) {
  const compared = [];
  for (const other of rows.filter((row) => row.contender === label && !row.failure)) {
    const now = rows.find((row) => row.case === other.case && row.contender === 'sablock' && !row.failure);
    if (now === undefined) continue;
    for (const { key, label: metric, digits, better } of metrics) {
      const both = Math.min(now.rounds.length, other.rounds.length);
      const ratios = now.rounds.slice(0, both).map((round, i) => round[key] / other.rounds[i][key]);
      const known = ratios.filter((ratio) => Number.isFinite(ratio) && ratio > 0);
      if (known.length === 0) continue;
      const [low, ratio, high] = [Math.min(...known), median(known), Math.max(...known)];
      const values = { now: now.values[key], other: other.values[key], digits };
      const verdict = known.length < LEAST_ROUNDS ? 'few rounds' : judge({ low, ratio, high }, better);
      compared.push({ case: other.case, metric, ...values, ratio, low, high, rounds: known.length, verdict });
    }
  }
  return compared;
}

function judge({ low, ratio, high }, better) {
  if (Math.abs(ratio - 1) <= TOLERANCE || (low <= 1 && high >= 1)) return 'same';
  return ratio > 1 === (better === 'higher') ? 'better' : 'worse';
}

/** The rows that the figures of goals are compared to; all else is the name of a row of the same case. */
const UNITS = { plain: ' x plain', limit: ' x limit', beside: ' beside the limit' };

/** The figure that a goal is about; `null` if it is compared to a row that this run does not have. */
function figureOf(row, rows, metric, versus, beside) {
  if (versus in UNITS) return row.versus[metric.key]?.[versus];
  const name = beside ?? versus;
  if (name === undefined) return row.values[metric.key];
  const other = rows.find((peer) => peer.case === row.case && peer.contender === name && !peer.failure);
  if (other === undefined) return null;
  return relate(row, other, metric, beside === undefined ? ratioOf : differenceOf);
}

/** Judges the goals of sablock's rows: `[{ case, text, value, reached }]`. */
function judgeGoals({ metrics, rows }) {
  const verdicts = [];
  for (const row of rows) {
    for (const { metric: wanted, versus, beside, atMost, atLeast } of row.goals ?? []) {
      const metric = metrics.find(({ key }) => key === wanted);
      const value = figureOf(row, rows, metric, versus, beside);
      if (value === null) continue;
      const reached = atMost === undefined ? value >= atLeast : value <= atMost;
      const bound = atMost === undefined ? `>= ${atLeast}` : `<= ${atMost}`;
      const ratio = versus === undefined ? '' : (UNITS[versus] ?? ` x ${versus}`);
      const unit = beside === undefined ? ratio : ` beside ${beside}`;
      verdicts.push({ case: row.case, text: `${metric.label} ${bound}${unit}`, value, reached });
    }
  }
  return verdicts;
}

/**
 * Returns what makes the run end non-zero: wrong results, unless known of that contender; any failure of sablock (but not of
 * another build); a limit's error.
 */
function problems({ name, absent, rows }) {
  const found = [];
  for (const [contender, reason] of Object.entries(absent)) {
    if (contender.startsWith('sablock') || contender === 'plain')
      found.push(`${name}: ${contender} is unavailable: ${reason}`);
  }
  for (const { case: caseName, contender, limit, failure } of rows) {
    if (!failure) continue;
    const isOurs = contender === 'sablock' || contender.startsWith('sablock ');
    const own = isOurs || ((contender === 'plain' || limit) && failure.kind === 'error');
    const serious = own || (failure.kind === 'wrong' && !failure.known);
    if (serious) found.push(`${name}, ${caseName}: ${contender}: ${failure.kind}: ${failure.text}`);
  }
  return found;
}

module.exports = { LEAST_ROUNDS, compare, against, judgeGoals, problems };
