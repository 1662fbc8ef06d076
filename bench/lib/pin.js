'use strict';
// Keeps the calling thread on one core, where the system can (Linux with taskset): whether a sleeper wakes on the
// waker's core or on another makes a factor of ten, and the scheduler's choice would drown every difference.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');

const CORES = os.availableParallelism();

function setAffinity(cores) {
  try {
    const thread = fs.readlinkSync('/proc/thread-self').split('/').pop();
    execFileSync('taskset', ['-pc', cores, thread], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Best effort: false if this system cannot. With one core, everything is pinned already. */
const pin = (core) => setAffinity(String(core % CORES));
const unpin = () => setAffinity(`0-${CORES - 1}`);

module.exports = { pin, unpin };
