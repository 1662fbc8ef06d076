'use strict';
// Clocks, busy-waiting and cores. A hold must last a known time without sleeping, so it spins on the clock; the time
// that the clock itself takes is measured once for each thread and taken off.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const { performance } = require('node:perf_hooks');

/** Nanoseconds since some moment of this thread's own: for durations inside one thread. */
const threadNs = () => performance.now() * 1e6;

/** Nanoseconds on the one monotonic clock of all threads: for stamps that another thread reads. */
function sharedNs() {
  const [seconds, nanos] = process.hrtime();
  return seconds * 1e9 + nanos;
}

function spinUntil(end) {
  let now;
  do now = performance.now();
  while (now < end);
  return now;
}

/** Returns how much longer than asked a spin of 2 µs lasts here, in ms: the median of many. */
function measureOvershoot() {
  const over = [];
  for (let i = 0; i < 2000; i++) {
    const start = performance.now();
    spinUntil(start + 0.002);
    over.push(performance.now() - start - 0.002);
  }
  over.sort((a, b) => a - b);
  return Math.max(0, over[over.length >> 1]);
}

let overshoot;

/** A function that keeps this thread busy for `µs` microseconds; for 0 it does nothing. */
function busyFor(µs) {
  if (µs === 0) return () => {};
  overshoot ??= measureOvershoot();
  const ms = Math.max(0, µs / 1000 - overshoot);
  return () => {
    spinUntil(performance.now() + ms);
  };
}

const SAMPLES = 15;

/**
 * The time of one turn of `loop(n)`, which makes n of them and returns how many did what they should (or a promise of that): the
 * best of some samples that each last long enough to be measured, as noise only adds. `{ ns, wrong }`.
 */
async function timePairs(loop, ms) {
  let n = 16;
  let missed = 0;
  for (const warm = threadNs(); threadNs() - warm < ms * 1e6; ) {
    const start = threadNs();
    missed += n - (await loop(n));
    if (threadNs() - start < ms * 1e5) n *= 2;
  }
  const samples = [];
  for (let i = 0; i < SAMPLES; i++) {
    const start = threadNs();
    missed += n - (await loop(n));
    samples.push((threadNs() - start) / n);
  }
  return { ns: Math.min(...samples), wrong: missed ? `${missed} of the holds did not happen` : undefined };
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Returns how long this thread has not slept, in nanoseconds: the time that it ran and, where the system says it (Linux), the
 * time that it was ready and other threads had its core. NaN where nothing is known of a single thread.
 */
function awakeNs() {
  try {
    const [ran, waitedForCore] = fs.readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ');
    return Number(ran) + Number(waitedForCore);
  } catch {
    const { user, system } = process.threadCpuUsage?.() ?? {};
    return (user + system) * 1000;
  }
}

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

/**
 * Keeps the calling thread on one core, where the system can (Linux with taskset): whether a sleeper wakes on the
 * waker's core or on another makes a factor of ten, and the scheduler's choice would hide every difference.
 * Returns false if this system cannot.
 */
const pin = (core) => setAffinity(String(core % CORES));
const unpin = () => setAffinity(`0-${CORES - 1}`);

module.exports = { threadNs, sharedNs, awakeNs, busyFor, timePairs, sleep, pin, unpin };
