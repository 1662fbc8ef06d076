// Calls each verb at each of the last depths before the stack overflows, and prints at how many of them it failed, and at how
// many of those it has changed something all the same.

const { AutoResetEvent, Latch, Once } = require('../..');
const { DEPTHS, atDepth } = require('../helpers/stack.js');

const buffer = new SharedArrayBuffer(4);
const word = new Int32Array(buffer);
const options = { allowMainThread: true };
const nothing = () => {};

const once = new Once(buffer, 0, options);
const event = new AutoResetEvent(buffer, 0, options);
const latch = new Latch(buffer, 0, options);
/** A verb that lets others in has a pending wait of this thread to think of.
const other = new Latch(new SharedArrayBuffer(4));
other.add();
other.waitAsync({ ref: false });
let entry;

/** The words before, what is called, and whether that has done all, if it did not fail, or nothing, if it did. */
const verbs = {
  runSync: { before: 0, act: () => once.runSync(nothing), after: () => once.isDone, untouched: () => word[0] === 0 },
  wait: { before: 1, act: () => event.wait(), after: () => !event.isSet, untouched: () => event.isSet },
  enter: {
    before: 0,
    act: () => {
      entry = latch.enter();
    },
    after: () => entry.leave(),
    untouched: () => word[0] === 0 && latch.inspect().holders.length === 0,
  },
  leave: {
    before: 0,
    prepare: () => {
      entry = latch.enter();
    },
    act: () => entry.leave(),
    after: () => word[0] === 0 && latch.inspect().holders.length === 0,
    untouched: () => entry.leave(),
  },
};

const results = {};
for (const [verb, { before, prepare = nothing, act, after, untouched }] of Object.entries(verbs)) {
  const result = { called: 0, failed: 0, leaked: 0 };
  for (let depth = -3; depth < DEPTHS; depth++) {
    word[0] = before;
    prepare();
    let isDone = true;
    // Functions that were never called need far more stack, to be compiled.
    if (depth < 0) act();
    else isDone = atDepth(act, depth) !== undefined;
    result.called += 1;
    if (!isDone) result.failed += 1;
    if (!(isDone ? after() : untouched())) result.leaked += 1;
  }
  results[verb] = result;
}
console.log(JSON.stringify(results));
