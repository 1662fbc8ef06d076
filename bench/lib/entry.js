'use strict';
// Loads a contender's package as its users do; see `entry` in contenders.js.

async function loadEntry(entry) {
  if (entry.import) await import(entry.import);
  else require(entry.require);
}

module.exports = { loadEntry };
