// A proxy in hostile weather before a store's server, for tests whose main thread blocks; it posts its address.

const { parentPort, workerData } = require('node:worker_threads');
const { createRandom } = require('../../tests/torture/processes/random.js');
const { startProxy } = require('../helpers/proxy.js');
const { createWeather } = require('../helpers/weather.js');

const { kind, target, seed } = workerData;
startProxy({ after() {} }, target).then((proxy) => {
  proxy.weather = createWeather(kind, createRandom(seed));
  parentPort.postMessage(proxy.url);
});
