// Finds the client of a store among what the program has installed.

const { createRequire } = require('node:module');
const { noClient } = require('./errors.js');

/** The needed part of a package that is made of several: it loads sooner. */
const PARTS = { redis: '@redis/client' };

/** Loads an installed package. */
function load(name, file) {
  try {
    return createRequire(file)(PARTS[name]);
  } catch {
    return require(file);
  }
}

/**
 * The first of these modules that is installed, where this package or the main script finds it, and usable: `{ name, client }`.
 */
exports.findClient = (names, isUsable = () => true) => {
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
      const client = load(name, file);
      if (isUsable(name, client)) return { name, client };
      failure = new Error(`The ${name} that is installed is too old (${file}).`);
    }
  }
  throw noClient(names, failure);
};
