// A wake-up that is lost is found by its waiter after a slice of 25 ms, and looks like a delay: so half of all handovers to
// threads that block take less than a fraction of that, whatever else runs.

/** The lateness of a thread that nobody has to wake. */
exports.BARE_WAKE = 'wake-up by the system alone, late';
const HANDOVER = 'handover to a blocked thread, ms';

const MOST_MS = 5;
/** On a loaded machine: of what a bare wake takes there. */
const FACTOR = 3;
const FEWEST = 20;

/** Over the whole run, for a median says nothing of a few. */
exports.checkLatency = ({ distributions }, report) => {
  const of = (wanted) => distributions.find(({ name }) => name === wanted);
  const [handover, bare] = [of(HANDOVER), of(exports.BARE_WAKE)];
  if (handover === undefined || bare === undefined || handover.seen < FEWEST) return;
  const bound = Math.max(MOST_MS, FACTOR * bare.median);
  if (handover.median <= bound) return;
  const numbers = `${handover.median} ms, of ${handover.seen}; a bare wake is ${bare.median} ms late`;
  report('late', `the median of a handover to a blocked thread: ${numbers}`);
};
