// Takes the mutex `holds` times by each of `ways` (those that block one after the other, the rest at once) and leaves a
// visit with the witness each time.

const { Mutex } = require('../..');
const { data, doing, finish } = require('../helpers/inside.js');
const { wayNamed } = require('../helpers/ways.js');
const { Witness } = require('../helpers/witness.js');

const mutex = new Mutex(data.buffer, data.mutexOffset);
const witness = new Witness(data.buffer, data.witnessOffset);
const visit = data.acrossTurns ? () => witness.visitAcrossTurns() : () => witness.visit();

const takeTurns = async (way) => {
  for (let hold = 1; hold <= data.holds; hold++) {
    doing(`hold ${hold} of ${data.holds} by ${way.name}`);
    const held = way.hold(mutex, visit);
    if (!way.blocks) await held;
  }
};

finish(() => Promise.all(data.ways.map((name) => takeTurns(wayNamed(name)))));
