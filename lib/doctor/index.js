// The lock doctor: `require('sablock/doctor')`, and `node --require sablock/doctor`. types/entries/doctor.d.ts documents it.

const { writeFileSync } = require('node:fs');
const path = require('node:path');
const { fileURLToPath } = require('node:url');
const { isMainThread } = require('node:worker_threads');
const { binding, thread } = require('../engine/thread.js');
const { invalidArgument } = require('../errors.js');
const clock = require('../load/clock.js');
const { toOptions } = require('./options.js');
const { ThreadDoctor } = require('./thread-doctor.js');
const { encodeProfile } = require('./profile.js');
const { toTrace } = require('./trace.js');

const settled = Promise.resolve();

const { LastText, Report, Text, Trace } = binding.Reading;

/** The result of `start()`: its report is that of the process. */
class Doctor {
  #doctor;
  #since = clock.now();
  /** The listeners that its own was moved behind: two that follow each other do so once. */
  #followed = new WeakSet();

  constructor(doctor) {
    this.#doctor = doctor;
    process.on('exit', this.#atExit);
    process.on('newListener', this.#follow);
  }

  /** A listener of the program may release what is held: so that of the doctor is the last one. */
  #follow = (event, listener) => {
    if (event !== 'exit' || listener === this.#atExit || this.#followed.has(listener)) return;
    this.#followed.add(listener);
    // It is not there yet.
    settled.then(() => {
      if (this.#doctor === null) return;
      process.off('exit', this.#atExit);
      process.on('exit', this.#atExit);
    });
  };

  /** When the thread ends; it is the process if the thread is the main one. */
  #atExit = () => {
    // It was stopped by another listener.
    if (this.#doctor === null) return;
    const isLast = process.listeners('exit').at(-1) === this.#atExit;
    // One that came in this very turn may still release it.
    if (isLast) this.#doctor.noteEnd();
    // Otherwise the core prints it when no code runs any more, but on Windows.
    if (!isMainThread || !(isLast || process.platform === 'win32')) return;
    const text = binding.doctorRead(LastText);
    if (text !== null) process.stderr.write(text);
  };

  report() {
    this.#doctor?.read();
    return JSON.parse(binding.doctorRead(Report));
  }

  print() {
    this.#doctor?.read();
    process.stderr.write(binding.doctorRead(Text));
  }

  writeProfile(file, { by = 'unlocker' } = {}) {
    if (by !== 'unlocker' && by !== 'waiter') throw invalidArgument('options.by', '"unlocker" or "waiter"', by);
    writeFileSync(file, encodeProfile(this.report().contention, by, clock.now() - this.#since));
  }

  writeTrace(file) {
    writeFileSync(file, JSON.stringify(toTrace(JSON.parse(binding.doctorRead(Trace)))));
  }

  stop() {
    this.#doctor?.stop();
    this.#doctor = null;
    process.off('exit', this.#atExit);
    process.off('newListener', this.#follow);
    if (thread.publicDoctor === this) thread.publicDoctor = null;
  }
}

exports.start = (options) => {
  const checked = toOptions(options);
  if (thread.publicDoctor) return thread.publicDoctor;
  const doctor = new ThreadDoctor(checked);
  doctor.start();
  thread.publicDoctor = new Doctor(doctor);
  return thread.publicDoctor;
};

const PRELOADS = /^(?:-r|--require|--import|--preload)(?:=(.*))?$/s;

/** The words of NODE_OPTIONS, of which those with spaces are in quotes. */
const wordsOf = (options) =>
  Array.from(options.matchAll(/(?:[^\s"]|"(?:\\.|[^"\\])*")+/gs), ([word]) =>
    word.replace(/"((?:\\.|[^"\\])*)"/gs, (_, quoted) => quoted.replace(/\\(.)/gs, '$1')),
  );

/** Whether this is the file that Node.js was started with. */
function isThis(name) {
  if (name === 'sablock/doctor') return true;
  try {
    return require.resolve(name.startsWith('file:') ? fileURLToPath(name) : path.resolve(name)) === __filename;
  } catch {
    return false;
  }
}

/** Whether Node.js preloads this, by --require or --import. */
function isPreloaded() {
  if (require.main !== undefined) return false;
  const told = [...process.execArgv, ...wordsOf(process.env.NODE_OPTIONS ?? '')];
  return told.some((word, index) => PRELOADS.test(word) && isThis(PRELOADS.exec(word)[1] ?? told[index + 1] ?? ''));
}

if (isPreloaded()) exports.start();
