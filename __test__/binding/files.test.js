// The binding's verbs for locks of files, beside another process.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { binding, thread } = require('../../lib/engine/thread.js');
const { holdIn, startPeers, unlockIn } = require('../helpers/peers.js');
const { needs } = require('../helpers/runtime.js');
const { asBeside, isIdle, listen, named, record, settled } = require('../helpers/seam.js');
const { watched } = require('../helpers/threads.js');

const { Exclusive, Shared } = binding.NameMode;

listen();

const opened = async (t) => {
  const { directory, peers } = await startPeers(t, 1);
  return { directory, peer: peers[0], number: binding.openDirectory(directory).number };
};
/** Until nothing of the wait that has just ended is left in the kernel. */
const nothingLeft = async () => {
  const status = named(binding.awaitLeft());
  if (status === 'REFUSED') return;
  assert.equal(status, 'PENDING');
  const token = record('Token');
  assert.deepEqual(await settled(), ['GRANTED', token]);
};
const release = (number) => named(binding.releaseHeld(number, false));
const lock = (
  directory,
  name,
  timeout,
  { mode = Exclusive, ifAvailable = false, wantsFence = false, isPart = false } = {},
) => named(binding.lockFile(directory, name, mode, timeout, wantsFence, isPart, ifAvailable));
const tryLock = (directory, name, some) => lock(directory, name, 0, some);
const request = (directory, name, timeout, { wantsFence = false, isPart = false } = {}, beside = undefined) =>
  named(binding.lockFileAsync(directory, name, Exclusive, timeout, wantsFence, isPart, beside));

test(
  'a directory is one, whatever path leads to it; what cannot be used says why',
  watched(async (t) => {
    const { directory, number } = await opened(t);
    const link = `${directory}-link`;
    fs.symlinkSync(directory, link, 'junction');
    t.after(() => fs.unlinkSync(link));
    const first = binding.openDirectory(directory);
    const again = binding.openDirectory(path.join(link, '.'));
    assert.deepEqual([again.number === number, again.key === first.key], [true, true]);
    assert.equal(again.path, first.path);
    assert.equal(binding.nameSpace(number), binding.nameSpace(first.key));
    assert.equal(binding.openDirectory(path.join(directory, 'a', 'b')).reason, 'no-parent');
    fs.writeFileSync(path.join(directory, 'file'), '');
    assert.equal(binding.openDirectory(path.join(directory, 'file')).reason, 'not-a-directory');
    const missing = binding.openDirectory(path.join(directory, 'file', 'a'));
    assert.deepEqual([missing.path.includes(directory), missing.message !== '', missing.errno > 0], [true, true, true]);
    if (process.platform === 'win32') return;
    const open = path.join(directory, 'open');
    fs.mkdirSync(open);
    fs.chmodSync(open, 0o777);
    const { reason, found } = binding.openDirectory(open);
    assert.deepEqual([reason, found & 0o777], ['not-sticky', 0o777]);
  }),
);

test(
  'what another process holds is not had at once, within a time, or by a wait that is taken back or over',
  watched(async (t) => {
    const { peer, number } = await opened(t);
    await holdIn(peer, 'one');
    for (const ifAvailable of [false, true]) assert.equal(tryLock(number, 'one', { ifAvailable }), 'TIMED_OUT');
    assert.equal(lock(number, 'one', 10, { mode: Shared }), 'TIMED_OUT');
    assert.equal(request(number, 'one', Infinity), 'PENDING');
    assert.ok(binding.cancel(record('Token')));
    await nothingLeft();
    assert.equal(request(number, 'one', 10, {}, asBeside()), 'PENDING');
    const timed = record('Token');
    assert.deepEqual(await settled(), ['TIMED_OUT', timed]);
    await nothingLeft();
    assert.equal(named(binding.awaitLeft()), 'REFUSED', 'it was the last');
    request(number, 'one', Infinity, { wantsFence: true });
    const granted = record('Token');
    await unlockIn(peer);
    assert.deepEqual(await settled(), ['GRANTED', granted]);
    const hold = record('Number');
    assert.equal(release(hold + 2 ** 32), 'RELEASED', 'another, which is not held');
    assert.equal(tryLock(number, 'one'), 'TIMED_OUT');
    assert.equal(release(hold), 'RELEASED');
    assert.ok(isIdle());
  }),
);

/** All threads of the process stand still. */
const isStopped = (pid) =>
  fs.readdirSync(`/proc/${pid}/task`).every((thread) => {
    const stat = fs.readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('T');
  });

test(
  'whoever is next is before one who tries, and not before one who takes what is available',
  { skip: process.platform !== 'linux' && 'only Linux shows that a process is stopped' },
  watched(async (t, threads) => {
    const { peer, number } = await opened(t);
    assert.equal(tryLock(number, 'next', { mode: Shared }), 'GRANTED');
    const own = record('Number');
    await peer.do((here) => {
      here.next = here.manager.acquireAsync('next');
    });
    await threads.until('it is next', () => {
      const status = tryLock(number, 'next', { mode: Shared });
      if (status === 'GRANTED') release(record('Number'));
      return status === 'TIMED_OUT';
    });
    peer.kill('SIGSTOP');
    await threads.until('it is stopped', () => isStopped(peer.pid));
    assert.equal(release(own), 'RELEASED');
    assert.equal(tryLock(number, 'next'), 'TIMED_OUT');
    assert.equal(tryLock(number, 'next', { ifAvailable: true }), 'GRANTED');
    assert.equal(release(record('Number')), 'RELEASED');
    peer.kill('SIGCONT');
    await peer.do((here) => here.next.then((lock) => lock.unlock()));
  }),
);

test(
  'when the time of one is over, the hold of another that is beside it goes back',
  watched(async (t) => {
    const { peer, number } = await opened(t);
    await holdIn(peer, 'slow');
    assert.equal(tryLock(number, 'beside'), 'GRANTED');
    const hold = record('Number');
    request(number, 'slow', 10, { isPart: true }, asBeside({ outer: [hold] }));
    const wait = record('Token');
    assert.deepEqual(await settled(), ['TIMED_OUT', wait]);
    // The clock may be about to do that. It is over when this returns, whoever does it.
    assert.equal(release(hold), 'RELEASED');
    assert.equal(tryLock(number, 'beside'), 'GRANTED');
    assert.equal(release(record('Number')), 'RELEASED');
  }),
);

test(
  'who holds a name is shown to others: alone by its record, shared by the kernel',
  watched(async (t) => {
    const { peer, number } = await opened(t);
    await holdIn(peer, 'alone');
    await holdIn(peer, 'together', 'shared');
    const [holder] = binding.fileHolders(number, 'alone');
    assert.deepEqual([holder.pid, holder.heldMs >= 0], [peer.pid, true]);
    assert.deepEqual(binding.fileHolders(number, 'nobody’s'), []);
    const sharersOf = (name) => binding.fileHolders(number, name, Shared).map(({ pid }) => pid);
    if (process.platform === 'linux') assert.deepEqual(sharersOf('together'), [peer.pid]);
    assert.deepEqual(sharersOf('nobody’s'), []);
    assert.equal(tryLock(number, 'own'), 'GRANTED');
    const own = record('Number');
    assert.deepEqual(binding.fileHolders(number, 'own'), [], 'a holder here is none in another process');
    assert.equal(release(own), 'RELEASED');
    assert.equal(named(binding.listFileHolders(number)), 'PENDING');
    const wait = record('Token');
    assert.deepEqual(await settled(), ['GRANTED', wait]);
    const { names, rows } = binding.takeTold();
    assert.deepEqual([names, rows.length, rows[0], rows[1], rows[3] >= 0], ['alone', 4, 5, peer.pid, true]);
    assert.equal(binding.takeTold(), null);
  }),
);

test(
  'a killed process leaves its name marked, with who it was, until that is taken off',
  watched(async (t) => {
    const { peer, number } = await opened(t);
    await holdIn(peer, 'left');
    peer.kill('SIGKILL');
    await peer.exited;
    assert.equal(lock(number, 'left', Infinity), 'GRANTED_ABANDONED');
    assert.deepEqual([record('HasEnded'), record('EndedProcess')], [1, peer.pid]);
    assert.equal(release(record('Number')), 'RELEASED');
    assert.equal(tryLock(number, 'left'), 'GRANTED_ABANDONED');
    assert.equal(record('HasEnded'), 0, 'it is told once');
    assert.equal(named(binding.markConsistent(record('Number'))), 'RELEASED');
    assert.equal(release(record('Number')), 'RELEASED');
    assert.equal(tryLock(number, 'left'), 'GRANTED');
    assert.equal(release(record('Number')), 'RELEASED');
  }),
);

test(
  'each hold has a larger fence, and what is not in yet leaves no mark',
  watched(async (t, threads) => {
    const { number } = await opened(t);
    const fenceOf = () => thread.fence;
    let last = 0n;
    for (let round = 0; round < 3; round += 1) {
      assert.equal(tryLock(number, 'fenced', { wantsFence: true }), 'GRANTED');
      assert.ok(fenceOf() > last);
      // Not below the microseconds of the wall clock.
      assert.ok(fenceOf() > BigInt(Date.now() - 60_000) * 1000n && fenceOf() < BigInt(Date.now() + 60_000) * 1000n);
      assert.deepEqual([record('EndedThread'), record('EndedProcess'), record('HasEnded')], [-1, -1, 0]);
      last = fenceOf();
      assert.equal(release(record('Number')), 'RELEASED');
    }
    for (const [isPart, expected] of [
      [true, 'GRANTED'],
      [false, 'GRANTED_ABANDONED'],
    ]) {
      const there = threads.start('seam');
      await there.call('lockFile', number, 'part', Exclusive, 0, false, isPart, false);
      await there.terminate();
      await there.exited;
      await threads.until('it is free', () => {
        const status = tryLock(number, 'part');
        if (status === 'TIMED_OUT') return false;
        assert.equal(status, expected);
        return true;
      });
      assert.equal(release(record('Number')), 'RELEASED');
    }
    assert.equal(tryLock(number, 'in', { isPart: true }), 'GRANTED');
    const hold = record('Number');
    assert.equal(named(binding.noteIn(hold, true)), 'GRANTED');
    if (process.platform !== 'win32') assert.ok(binding.fileDescriptors(hold).every((each) => each > 2));
    assert.equal(release(hold), 'RELEASED');
    assert.equal(release(hold), 'RELEASED', 'its number is over, and changes nothing');
    assert.deepEqual(binding.fileDescriptors(hold), []);
  }),
);

test(
  'a file that was removed while it was held is told, and one that cannot be opened fails with the reason',
  { ...needs('failing writes'), skip: process.platform === 'win32' && 'the file cannot be removed' },
  watched(async (t) => {
    const { directory, number } = await opened(t);
    assert.equal(tryLock(number, 'removed'), 'GRANTED');
    const hold = record('Number');
    for (const name of fs.readdirSync(directory)) fs.rmSync(path.join(directory, name), { recursive: true });
    assert.equal(release(hold), 'REMOVED');
    assert.equal(tryLock(number, 'gone'), 'GRANTED');
    assert.equal(release(record('Number')), 'RELEASED');
    for (const name of fs.readdirSync(directory)) {
      fs.rmSync(path.join(directory, name), { recursive: true });
      fs.mkdirSync(path.join(directory, name));
    }
    assert.equal(tryLock(number, 'gone'), 'FAILED');
    const failure = binding.takeTold();
    assert.deepEqual(
      [failure.reason, failure.errno > 0, failure.what !== '', failure.message !== ''],
      ['system', true, true, true],
    );
    assert.equal(binding.takeTold(), null);
  }),
);
