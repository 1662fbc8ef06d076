'use strict';
// What a crew gets done that does nothing but take locks, checked by what the locks guard.

const { sleep } = require('./clock');
const { jain, max, sum } = require('./stats');

/**
 * Lets the crew run for `ms` and ends it. Each hold adds one to an element of `data`. Answers `{ wrong }` if holds are
 * missing there, or the rate in holds/ms, how even it was, and what the bodies answered.
 */
async function throughput(crew, data, ms) {
  crew.go();
  await sleep(ms);
  crew.stop();
  const results = await crew.results();
  await crew.end();
  const holds = results.map((result) => result.holds);
  const [made, counted] = [sum(holds), sum([...data])];
  if (counted !== made) return { wrong: `${made} holds counted ${counted}: two threads were inside at once` };
  const ns = max(results.map((result) => result.end)) - Math.min(...results.map((result) => result.start));
  return { rate: (made / ns) * 1e6, jain: jain(holds), holds, results };
}

module.exports = { throughput };
