// The lock doctor: `require('sablock/doctor')`, and `node --require sablock/doctor`. doctor.d.ts documents it.

const { writeFileSync } = require('node:fs');
const path = require('node:path');
const { fileURLToPath } = require('node:url');
const { isMainThread } = require('node:worker_threads');
const { binding, thread } = require('../engine/thread.js');
const { toOptions } = require('./options.js');
const { ThreadDoctor } = require('./thread-doctor.js');
const { encodeProfile } = require('./profile.js');
const { toTrace } = require('./trace.js');

/** What `start()` returns: the report is that of the process. */
class Doctor {
  #doctor;

  constructor(doctor) {
    this.#doctor = doctor;
  }

  report() {
    return JSON.parse(binding.doctorReport());
  }

  print() {
    process.stderr.write(binding.doctorText());
  }

  writeProfile(file) {
    writeFileSync(file, encodeProfile(this.report().contention));
  }

  writeTrace(file) {
    writeFileSync(file, JSON.stringify(toTrace(JSON.parse(binding.doctorTrace()))));
  }

  stop() {
    this.#doctor?.stop();
    this.#doctor = null;
    if (thread.publicDoctor === this) thread.publicDoctor = null;
  }
}

exports.start = (options) => {
  const checked = toOptions(options);
  if (thread.publicDoctor) return thread.publicDoctor;
  const doctor = new ThreadDoctor(checked);
  doctor.start(checked);
  thread.publicDoctor = new Doctor(doctor);
  return thread.publicDoctor;
};

const PRELOADS = /(?:^|\s)(?:-r|--require|--import)(?:=|\s+)(\S+)/g;

/** Whether this is the file that Node.js was told to load. */
function isThis(name) {
  if (name === 'sablock/doctor') return true;
  try {
    return require.resolve(name.startsWith('file:') ? fileURLToPath(name) : path.resolve(name)) === __filename;
  } catch {
    return false;
  }
}

/** Whether Node.js loads this before the program, because it was told to. */
function isPreloaded() {
  if (require.main !== undefined) return false;
  const told = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ');
  return [...told.matchAll(PRELOADS)].some(([, name]) => isThis(name));
}

/** Prints what was found when the process ends, and on SIGUSR2 if this is asked for. */
function watchProcess(doctor) {
  process.on('exit', () => {
    const text = binding.doctorTextOnce();
    if (text !== null) process.stderr.write(text);
  });
  if (process.env.SABLOCK_DOCTOR_SIGNAL !== 'SIGUSR2') return;
  const print = () => doctor.print();
  process.on('SIGUSR2', print);
  // The program's own listener takes its place, once it is there: without any, Node.js would not hear of the signal any more.
  process.on('newListener', (event, listener) => {
    if (event === 'SIGUSR2' && listener !== print) queueMicrotask(() => process.off('SIGUSR2', print));
  });
}

if (isPreloaded()) {
  const doctor = exports.start();
  if (isMainThread) watchProcess(doctor);
}
