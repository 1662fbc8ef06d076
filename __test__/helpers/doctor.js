// The lock doctor in tests: for the length of one body.

const path = require('node:path');
const diagnostics = require('node:diagnostics_channel');
const { Mutex } = require('../../index.js');
const { start } = require('../../lib/doctor/index.js');

exports.DOCTOR = path.join(__dirname, '..', '..', 'lib', 'doctor', 'index.js');

/** Runs `body(doctor, messages)`, with what is published on `sablock:deadlock` meanwhile. */
exports.withDoctor = async (options, body) => {
  const messages = [];
  const note = (message) => messages.push(message);
  diagnostics.subscribe('sablock:deadlock', note);
  const doctor = start(options);
  try {
    return await body(doctor, messages);
  } finally {
    doctor.stop();
    diagnostics.unsubscribe('sablock:deadlock', note);
  }
};

let made = 0;
/** New mutexes, whose names no other test has. */
exports.namedMutexes = (count, options = {}) => {
  const buffer = new SharedArrayBuffer(8 * count);
  const prefix = `lock ${process.pid}.${made++}`;
  return Array.from(
    { length: count },
    (_, index) => new Mutex(buffer, 8 * index, { ...options, name: `${prefix}.${'abcdefgh'[index]}` }),
  );
};

/** Returns what a report says of these locks. */
exports.about = (entries, lock) => entries.filter((entry) => entry.lock.name === lock.name);

exports.sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** New locks, in memory of their own. */
exports.createLocks = (count, options = () => undefined) => {
  const buffer = new SharedArrayBuffer(64 * count);
  return Array.from({ length: count }, (_, index) => new Mutex(buffer, 64 * index, options(index)));
};

/** Locks both, one inside of the other. */
exports.inside = (outer, inner) => outer.executeLocked(() => inner.executeLocked(() => {}));
