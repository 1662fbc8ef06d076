'use strict';
// The process of one contender (or of the limits): one of its own, so that V8
// optimises each contender's loops for that contender alone, its flags are its own, and its crash or hang is too.
// The parent asks for one round at a time; between rounds this process sleeps.

const path = require('node:path');
const { NOT_BUILT } = require('../lib/builds');
const { byName, load } = require('../lib/contenders');

const scenarioByName = (name) => require(path.join(__dirname, '..', 'scenarios', name));

let contender;

async function measure({ scenario, limit, params }) {
  const module = scenarioByName(scenario);
  if (limit !== undefined) return module.limits[limit].run(params);
  if (contender.oneThread && module.threads) return null;
  return module.run(contender, params);
}

process.on('message', async (request) => {
  try {
    if (request.start !== undefined) {
      if (request.start === null) return process.send({ ready: true });
      contender = byName(request.start);
      if (request.load) await load(contender);
      return process.send({ ready: true });
    }
    process.send({ result: await measure(request) });
  } catch (error) {
    if (error?.code === NOT_BUILT) return process.send({ notBuilt: error.message });
    process.send({ error: String(error?.message ?? error), stack: error?.stack });
  }
});
