// Finds the client of a store among what the program has installed.

const { createRequire } = require('node:module');
const { noClient } = require('./errors.js');

/** The first of these modules that is installed, where this package or the main script finds it: `{ name, client }`. */
exports.findClient = (names) => {
  const places = [__filename, process.argv[1]].filter((place) => typeof place === 'string' && place !== '');
  let failure;
  for (const name of names) {
    for (const place of places) {
      let file;
      try {
        file = createRequire(place).resolve(name);
      } catch (error) {
        failure = error;
        continue;
      }
      return { name, client: require(file) };
    }
  }
  throw noClient(names, failure);
};
