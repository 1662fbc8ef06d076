// A thread that is terminated while the addon or the doctor has called its JS: the verb there does not return. One whose termination
// was lost in between would run on, which nothing but the end of the process stops.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Mutex } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { DOCTOR, withDoctor } = require('../helpers/doctor.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const [SPINS, RETURNED] = [0, 1];
const HELD = 8;

/** By what runs: what calls it, in a thread whose lock at 0 is waited for, while the one at `HELD` is held. */
const CALLS = {
  'the formatter of a stack, for the place of an unlock that somebody waits for': (here, spin) => {
    Error.prepareStackTrace = spin;
    here.mutex.unlock();
  },
  'the formatter of a stack, for the place of a wait': (here, spin) => {
    Error.prepareStackTrace = spin;
    here.held.lockAsync();
  },
  'the formatter of a stack, for the place of a wait that blocks': (here, spin) => {
    Error.prepareStackTrace = spin;
    here.held.lock();
  },
  'the clock of a thread that starts the doctor': (here, spin) => {
    const { binding } = here.require('../../lib/engine/thread.js');
    const slots = new Float64Array(binding.DOCTOR_SLOTS * binding.DOCTOR_SLOT_LENGTH + 1);
    const settings = { ...here.require('../../lib/doctor/options.js').toOptions(), forwarder: 0, folder: '' };
    const { threadId } = here.require('node:worker_threads');
    binding.doctorStart(threadId, slots, spin, { ...settings, isTracking: true, mayAsk: false });
  },
  'a subscriber of long holds, in a thread that blocks': (here, spin) => {
    here.require('node:diagnostics_channel').subscribe('sablock:long-hold', spin);
    here.held.lock();
  },
};

for (const [what, act] of Object.entries(CALLS)) {
  test(
    `a thread that is terminated in ${what} runs no further`,
    needs('termination when busy', 'prompt ends'),
    watched((_, threads) =>
      withDoctor({}, async () => {
        const buffer = new SharedArrayBuffer(16);
        const [mutex, held] = [0, HELD].map((byteOffset) => new Mutex(buffer, byteOffset, { allowMainThread: true }));
        const prepare = (here, HELD) => {
          here.mutex = new here.sablock.Mutex(here.buffer);
          here.held = new here.sablock.Mutex(here.buffer, HELD);
          here.mutex.lock();
        };
        const [actor] = await startActors(threads, 1, buffer, { execArgv: ['--require', DOCTOR], prepare }, HELD);
        held.lock();
        const wait = mutex.lockAsync();
        actor
          .do(
            (here, act, spins, returned) => {
              const run = new Function(`return ${act}`)();
              const spin = () => {
                here.raise(spins);
                for (;;) Math.random();
              };
              try {
                run(here, spin);
              } catch {}
              here.raise(returned);
            },
            String(act),
            SPINS,
            RETURNED,
          )
          .catch(() => {});
        await threads.raised(SPINS);
        await actor.terminate();
        await actor.exited;
        assert.equal(Atomics.load(threads.flags, RETURNED), 0);
        await wait;
        mutex.unlock();
        held.unlock();
      }),
    ),
  );
}
