// Holds of one mutex never overlapped: by the stamps, and by the number that each holder drew without atomics.

const { tell } = require('../history.js');

exports.checkExclusion = ({ mutexes }, report) => {
  for (const { index, holds } of mutexes) {
    let previous;
    for (const hold of holds) {
      if (previous !== undefined) checkPair(index, previous, hold, report);
      else if (hold.sequence !== 1) report('sequence', `mutex ${index}: the first hold is ${tell(hold)}`);
      previous = hold;
    }
  }
};

function checkPair(mutex, first, second, report) {
  const pair = () => `mutex ${mutex}: ${tell(first)}; then ${tell(second)}`;
  const died = !first.left && first.thread.died;
  if (!first.left && !first.thread.died) report('overlap', `${pair()}: the first thread lives and has not unlocked`);
  if (first.left && first.leftTick > second.heldTick) report('overlap', pair());
  if (died && first.thread.lastTick > second.heldTick) {
    report('overlap', `${pair()}: the first thread still ran, at ${first.thread.lastTick}`);
  }
  const step = second.sequence - first.sequence;
  // A thread that dies between drawing its number and storing it leaves the number to the next.
  if (step !== 1 && !(step === 0 && died)) report('sequence', pair());
}
