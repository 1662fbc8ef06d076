// Which lock worker serves this thread: a hidden thread that keeps the connections to stores.
//
// A thread ends with its starter, so the main thread owns it: another thread's first request makes main start it. If main has not
// loaded this package, the thread starts one of its own, for itself and for the threads that it starts.

const { getEnvironmentData, setEnvironmentData } = require('node:worker_threads');
const { start, startDue } = require('../engine/lock-worker.js');
const { binding, isMainThread, thread } = require('../engine/thread.js');

const INHERITED = 'sablock:desk';

/** The number of the desk that serves this thread. */
exports.deskOfThread = () => {
  const known = thread.deskNumber;
  if (known >= 0 && binding.deskState(known) >= 0) return known;
  thread.deskNumber = choose();
  return thread.deskNumber;
};

function choose() {
  if (!isMainThread) {
    const ofMain = binding.mainDesk();
    if (ofMain >= 0) return ofMain;
    const inherited = getEnvironmentData(INHERITED);
    if (typeof inherited === 'number' && binding.deskState(inherited) >= 0) return inherited;
  }
  const ofMain = isMainThread ? binding.mainDesk() : -1;
  const desk = ofMain >= 0 ? ofMain : binding.openDesk(isMainThread);
  if (ofMain >= 0) startDue();
  else start(desk);
  if (!isMainThread) setEnvironmentData(INHERITED, desk);
  return desk;
}
