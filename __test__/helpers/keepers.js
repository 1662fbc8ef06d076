// A keeper of a store in a worker of its own, without a desk: what it asks the binding for can be replaced there.

const { Worker } = require('node:worker_threads');
const { descriptionOf } = require('../../lib/stores/store.js');

/** Runs `source` there, in which `binding`, `keeper` and `parentPort` are. Returns the worker. */
exports.startKeeper = (t, store, source) => {
  const file = (name) => JSON.stringify(require.resolve(`../../lib/${name}`));
  const before = `
    const { parentPort, workerData } = require('node:worker_threads');
    const { binding } = require(${file('engine/thread.js')});
    const { readDescription } = require(${file('stores/store.js')});
    const description = readDescription(workerData);
    const folder = require('node:path').dirname(${file('stores/store.js')});
    const [Keeper] = Object.values(require(folder + '/' + description.kind + '/keeper.js'));
    const keeper = new Keeper(description, 0);`;
  const worker = new Worker(`${before}\n${source}`, { eval: true, workerData: descriptionOf(store) });
  t.after(() => worker.terminate());
  return worker;
};

/** A request as the desk hands it to a keeper, of any name. */
exports.ticketOf = (more) => ({
  name: 'a name',
  isShared: false,
  isTry: false,
  isCancelled: false,
  wantsFence: false,
  place: null,
  asked: null,
  ...more,
});
