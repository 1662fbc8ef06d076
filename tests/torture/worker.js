// A worker of the torture: an actor, and how it ends.

const { threadId, workerData } = require('node:worker_threads');
const { Actor } = require('./actor.js');
const { Arena } = require('./arena.js');
const { Random } = require('./choices.js');
const { FATES, Log } = require('./log.js');

const { seeds } = workerData;
const actor = new Actor({
  ...workerData,
  arena: new Arena(workerData.arena),
  log: new Log(workerData.log),
  random: new Random(...seeds),
  threadId,
});

actor.run().then(() => {
  if (actor.plan.fate === FATES.RETURNS && !actor.arena.isStopping) actor.returnHolding();
  else if (!actor.isEnding) actor.meet(FATES.DONE);
});
