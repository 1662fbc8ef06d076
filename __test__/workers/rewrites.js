// Rewrites the shared record `holds` times and returns how often it was torn.

const { Mutex } = require('../..');
const { data, doing, finish } = require('../helpers/inside.js');
const { Record } = require('../helpers/record.js');
const { wayNamed } = require('../helpers/ways.js');

const mutex = new Mutex(data.buffer, data.mutexOffset);
const record = new Record(data.buffer, data.recordOffset);
const way = wayNamed(data.way);

finish(async () => {
  let torn = 0;
  const rewrite = () => {
    if (!record.rewrite()) torn++;
  };
  for (let hold = 1; hold <= data.holds; hold++) {
    doing(`rewrite ${hold} of ${data.holds} by ${way.name}`);
    const held = way.hold(mutex, rewrite);
    if (!way.blocks) await held;
  }
  return torn;
});
