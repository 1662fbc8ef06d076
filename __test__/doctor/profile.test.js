// The profile and the trace, read back by decoders that are not ours.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');
const vm = require('node:vm');
const { gunzipSync } = require('node:zlib');
const { Profile } = require('pprof-format');
const { about, namedMutexes, sleep, withDoctor } = require('../helpers/doctor.js');
const { createFolder } = require('../helpers/folder.js');
const { limit } = require('../helpers/limits.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');
const { LockManager } = require('../..');
const { encodeProfile } = require('../../lib/doctor/profile.js');
const { toTrace } = require('../../lib/doctor/trace.js');

const ON = { trace: true, stuckMs: Infinity, longHoldMs: Infinity };

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-profile-'));
process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));

/** Three tasks, one after the other. */
async function contend(lock) {
  const hold = () => lock.executeLocked(() => sleep(5));
  await Promise.all([hold(), hold(), hold()]);
}

/** A profile, and its functions and lines: `[name, file]` by the id of a function, `[name, file, line]` by that of a place. */
function decode(bytes) {
  const profile = Profile.decode(gunzipSync(bytes));
  const text = (index) => profile.stringTable.strings[Number(index)];
  const functions = new Map(profile.function.map(({ id, name, filename }) => [id, [text(name), text(filename)]]));
  const lines = new Map(
    profile.location.map(({ id, line: [{ functionId, line }] }) => [id, [...functions.get(functionId), Number(line)]]),
  );
  return { profile, text, functions, lines };
}

test('a frame of the profile has its function and its file, whatever the name of its folder', () => {
  const place = { threadId: 0, stack: ['main (/My Program (2)/app.js:12:3)'] };
  const delay = { waits: 1, totalMs: 1 };
  const lock = { name: 'a', kind: 'Mutex', byteOffset: 0 };
  const contention = [{ lock, ...delay, waiters: [], unlockers: [{ place, ...delay }] }];
  const { functions } = decode(encodeProfile(contention, 'unlocker', 1));
  assert.deepEqual([...functions.values()], [['main', '/My Program (2)/app.js']]);
});

/** Frames, of which each two differ in one thing: the name, the file, the line, the column. */
const FRAMES = [
  ['save', '/a.js', 3, 5],
  ['save', '/a.js', 3, 9],
  ['save', '/a.js', 7, 5],
  ['save', '/b.js', 3, 5],
  ['load', '/a.js', 3, 5],
  ['<anonymous>', '/a.js', 3, 5],
  ['<anonymous>', '/b.js', 3, 5],
  ['<anonymous>', '/b.js', 4, 5],
];

for (const by of ['unlocker', 'waiter']) {
  test(`functions of one name in two files are two, and one of one file is one, in a profile by ${by}s`, () => {
    const frames = [...FRAMES, ...FRAMES.slice().reverse()];
    const textOf = ([name, file, line, column]) => `${name} (${file}:${line}:${column})`;
    const delay = { waits: 1, totalMs: 1 };
    const lock = { name: 'a', kind: 'Mutex', byteOffset: 0 };
    // Each is the innermost one once, with the others of the same list behind it.
    const delays = frames.map((_, at) => ({
      place: { threadId: 0, stack: [...frames.slice(at), ...frames.slice(0, at)].map(textOf) },
      ...delay,
    }));
    const entry = {
      lock,
      waits: frames.length,
      totalMs: frames.length,
      waiters: [],
      unlockers: [],
      [`${by}s`]: delays,
    };
    const { functions, lines, profile } = decode(encodeProfile([entry], by, 1));
    const of = (list) => new Set(list.map((each) => each.join(' ')));
    assert.deepEqual(of([...functions.values()]), of(FRAMES.map((frame) => frame.slice(0, 2))));
    assert.equal(functions.size, of([...functions.values()]).size, 'each is there once');
    for (const [at, { locationId }] of profile.sample.entries()) {
      const expected = [...frames.slice(at), ...frames.slice(0, at)].map((frame) => frame.slice(0, 3));
      assert.deepEqual(
        locationId.map((id) => lines.get(id)),
        expected,
      );
    }
  });
}

/** The samples of a profile: the innermost function, the values, and the labels. */
function samplesOf(contention, by = 'unlocker') {
  const { profile, text, lines } = decode(encodeProfile(contention, by, 1));
  return profile.sample.map(({ locationId, value, label }) => ({
    name: lines.get(locationId[0])[0],
    value: value.map(Number),
    label: label.map(({ key, str }) => [text(key), text(str)]),
  }));
}

test('the waits of a profile whose unlock nobody has seen are of an unknown place, with what is left of the time', () => {
  const lock = { name: null, kind: 'RwLock', byteOffset: 8 };
  const of = (name, threadId, waits, totalMs) => ({
    place: { threadId, stack: name === null ? [] : [`${name} (/a.js:1:1)`] },
    waits,
    totalMs,
  });
  const [seen, several] = [of('one', 3, 2, 5), of('other', -1, 1, 4)];
  const entry = { lock, waits: 7, totalMs: 300, waiters: [of(null, 2, 7, 300)], unlockers: [seen, several] };
  const label = ['lock', 'RwLock at byte 8'];
  assert.deepEqual(samplesOf([entry]), [
    { name: 'one', value: [2, 5e6], label: [label, ['thread', '3']] },
    // Several that have ended have no number.
    { name: 'other', value: [1, 4e6], label: [label] },
    { name: '(unknown)', value: [4, 291e6], label: [label] },
  ]);
  assert.deepEqual(samplesOf([entry], 'waiter'), [
    { name: '(unknown)', value: [7, 300e6], label: [label, ['thread', '2']] },
  ]);
  const rounded = { ...entry, waits: 4, totalMs: 8.9 };
  assert.deepEqual(samplesOf([rounded])[2].value, [1, 0], 'no time is below 0');
});

test('a profile has long names of any alphabet as they are, and says when it was made', () => {
  const name = `${'größer 漢😀 '.repeat(40)}z`;
  const place = {
    threadId: 0,
    stack: [`${name} (/${name}.js:70000:3)`, '<anonymous> (evalmachine.<anonymous>:2:1)', 'odd'],
  };
  const delay = { waits: 1, totalMs: 1 };
  const entry = {
    lock: { name, kind: 'Mutex', byteOffset: 0 },
    ...delay,
    waiters: [],
    unlockers: [{ place, ...delay }],
  };
  const before = Date.now();
  const bytes = encodeProfile([entry], 'unlocker', 12.5);
  const { profile, lines } = decode(bytes);
  assert.deepEqual(
    [...lines.values()],
    [
      [name, `/${name}.js`, 70_000],
      ['<anonymous>', 'evalmachine.<anonymous>', 2],
      ['odd', '', 0],
    ],
  );
  assert.deepEqual(samplesOf([entry])[0].label[0], ['lock', `Mutex ${name}`]);
  assert.equal(Number(profile.durationNanos), 12.5e6);
  const made = Math.round(Number(profile.timeNanos) / 1e6);
  assert.ok(made >= before && made <= Date.now(), `${made} and ${before}`);
  const { strings } = profile.stringTable;
  assert.deepEqual(
    [strings[Number(profile.periodType.type)], strings[Number(profile.periodType.unit)], Number(profile.period)],
    ['contentions', 'count', 1],
  );
});

test(
  'two files have their own delays, though functions of one name contend at one line of both',
  watched(() =>
    withDoctor(ON, async (doctor) => {
      const [lock] = namedMutexes(1);
      const files = ['a.js', 'b.js'].map((name) => path.join(folder, name));
      const source = '(async function save(lock, hold) {\n  await lock.executeLocked(hold);\n})';
      const saves = files.map((filename) => vm.runInThisContext(source, { filename }));
      // The first of each file waits for none, or for the other's.
      await Promise.all([...saves, ...saves].map((save) => save(lock, () => sleep(5))));
      const file = path.join(folder, 'two.pb.gz');
      for (const by of ['waiter', 'unlocker']) {
        doctor.writeProfile(file, { by });
        const { profile, lines } = decode(fs.readFileSync(file));
        const seen = new Set(profile.sample.map(({ locationId }) => lines.get(locationId[0]).join(' ')));
        assert.deepEqual(seen, new Set(files.map((each) => `save ${each} 2`)), by);
      }
    }),
  ),
);

test(
  'the profile has the counts and delays of the report, by call site',
  watched(() =>
    withDoctor(ON, async (doctor) => {
      const [one, other] = namedMutexes(2);
      await contend(one);
      await contend(other);
      const file = path.join(folder, 'locks.pb.gz');
      doctor.writeProfile(file);
      const { contention } = doctor.report();
      const { profile, text, lines } = decode(fs.readFileSync(file));
      assert.deepEqual(
        profile.sampleType.map(({ type, unit }) => [text(type), text(unit)]),
        [
          ['contentions', 'count'],
          ['delay', 'nanoseconds'],
        ],
      );
      const sum = (index) => profile.sample.reduce((total, { value }) => total + Number(value[index]), 0);
      const waits = contention.reduce((total, entry) => total + entry.waits, 0);
      const totalMs = contention.reduce((total, entry) => total + entry.totalMs, 0);
      assert.equal(waits, 4);
      assert.equal(sum(0), waits);
      assert.ok(Math.abs(sum(1) - totalMs * 1e6) <= profile.sample.length, `${sum(1)} and ${totalMs} ms`);

      const expected = about(contention, one)[0].unlockers[0].place.stack[0];
      const [name, file_, line] = lines.get(profile.sample[0].locationId[0]);
      assert.ok(expected.startsWith(`${name} (${file_}:${line}:`), `${expected}: ${name} ${file_} ${line}`);
      const labels = profile.sample.map(({ label }) => label.map(({ key, str }) => [text(key), text(str)]));
      assert.deepEqual(
        new Set(labels.map(([[, lock]]) => lock)),
        new Set([`Mutex ${one.name}`, `Mutex ${other.name}`]),
      );
      assert.deepEqual(labels[0][1], ['thread', '0']);
    }),
  ),
);

function frees(held) {
  held.unlock();
}

test(
  'a name that is waited for has the places that freed it, in the process and in a directory',
  watched((t) =>
    withDoctor(ON, async (doctor) => {
      for (const scope of [{}, { directory: createFolder(t) }]) {
        const manager = new LockManager(scope);
        const name = `freed ${Object.keys(scope)}`;
        const held = await manager.acquireAsync(name);
        const next = manager.acquireAsync(name);
        while ((await manager.query()).pending.length === 0);
        frees(held);
        (await next).unlock();
        const [{ unlockers }] = about(doctor.report().contention, { name });
        assert.deepEqual(
          unlockers.map(({ place }) => place.stack[0].split(' ')[0]),
          ['frees'],
          name,
        );
      }
    }),
  ),
);

test(
  'the place of an unlock that no code of the program awaits is where its verb was called',
  watched(() =>
    withDoctor(ON, async (doctor) => {
      const [lock] = namedMutexes(1);
      lock.executeLocked(() => sleep(5));
      for (let turn = 0; turn < 2; turn++) lock.executeLocked(() => {});
      while (lock.inspect().locked || lock.inspect().waiters.length > 0) await sleep(1);
      const [{ waits, unlockers }] = about(doctor.report().contention, lock);
      assert.equal(waits, 2);
      for (const { place } of unlockers) assert.match(place.stack[0], /profile\.test\.js/);
    }),
  ),
);

test(
  'an unlock is of its own place, whatever was unlocked before it',
  watched(() =>
    withDoctor(ON, async (doctor) => {
      const [before, lock] = namedMutexes(2);
      const earlier = (function takesBefore() {
        return before.tryAcquire();
      })();
      const asks = (body) => lock.executeLocked(body);
      asks(() => earlier.unlock());
      asks(() => {});
      while (lock.inspect().locked || lock.inspect().waiters.length > 0) await sleep(1);
      const [{ unlockers }] = about(doctor.report().contention, lock);
      assert.deepEqual(
        unlockers.map(({ place }) => place.stack[0].split(' ')[0]),
        ['asks'],
      );
    }),
  ),
);

test(
  'a profile by waiters has the places that waited, and each has the time that it is of',
  watched(() =>
    withDoctor(ON, async (doctor) => {
      const begun = performance.now();
      const [lock] = namedMutexes(1);
      const holdsIt = () => lock.executeLocked(() => sleep(20));
      const wantsIt = () => lock.executeLocked(() => {});
      await Promise.all([holdsIt(), wantsIt(), wantsIt()]);
      const file = path.join(folder, 'by.pb.gz');
      const functionsOf = (by) => {
        const seenFor = performance.now() - begun;
        doctor.writeProfile(file, { by });
        const {
          durationNanos,
          function: functions,
          location,
          sample,
          stringTable,
        } = Profile.decode(gunzipSync(fs.readFileSync(file)));
        const ms = Number(durationNanos) / 1e6;
        // The count began with the doctor, right before.
        assert.ok(ms >= seenFor && ms - seenFor < limit(1000), `${ms} and ${seenFor} ms`);
        const nameOf = (id) => {
          const [{ functionId }] = location.find((each) => each.id === id).line;
          return stringTable.strings[Number(functions.find((each) => each.id === functionId).name)];
        };
        const delay = sample.reduce((sum, { value }) => sum + Number(value[1]) / 1e6, 0);
        assert.ok(Math.abs(delay - about(doctor.report().contention, lock)[0].totalMs) < 0.01);
        return new Set(sample.flatMap(({ locationId }) => nameOf(locationId[0])));
      };
      assert.deepEqual(functionsOf('waiter'), new Set(['wantsIt']));
      assert.deepEqual(functionsOf('unlocker'), new Set(['holdsIt', 'wantsIt']));
      assert.deepEqual(functionsOf(undefined), functionsOf('unlocker'));
      assert.throws(() => doctor.writeProfile(file, { by: 'holder' }), { code: 'ERR_INVALID_ARG_TYPE' });
    }),
  ),
);

test(
  'an empty profile is one',
  watched(() =>
    withDoctor(ON, (doctor) => {
      const file = path.join(folder, 'empty.pb.gz');
      doctor.writeProfile(file);
      const profile = Profile.decode(gunzipSync(fs.readFileSync(file)));
      assert.equal(profile.sampleType.length, 2);
      assert.deepEqual(profile.sample, []);
    }),
  ),
);

test(
  'the trace has a slice for each wait and each contended hold, and a flow from each unlock to the wait that it ended',
  watched(() =>
    withDoctor(ON, async (doctor) => {
      const [lock] = namedMutexes(1);
      await contend(lock);
      const file = path.join(folder, 'locks.json');
      doctor.writeTrace(file);
      const { traceEvents } = JSON.parse(fs.readFileSync(file, 'utf8'));
      const of = (phase, category) =>
        traceEvents.filter(({ ph, cat }) => ph === phase && (category === undefined || cat === category));
      // One of two that overlap is on a row of its own.
      const apart = of('b', 'wait').map(({ id, ts, tid }) => {
        const { ts: end } = of('e', 'wait').find((event) => event.id === id);
        return { ts, tid, dur: end - ts };
      });
      assert.equal(apart.length, 1);
      const waits = [...of('X', 'wait'), ...apart];
      const [entry] = about(doctor.report().contention, lock);
      assert.equal(waits.length, entry.waits);
      const totalMs = waits.reduce((total, { dur }) => total + dur, 0) / 1e3;
      assert.ok(Math.abs(totalMs - entry.totalMs) < 0.1, `${totalMs} and ${entry.totalMs}`);
      // The last one is not contended.
      const holds = of('X', 'hold');
      assert.equal(holds.length, 2);
      for (const { dur } of holds) assert.ok(dur >= 3e3 && dur < 10e6, String(dur));
      const [starts, ends] = [of('s'), of('f')];
      assert.equal(starts.length, waits.length);
      starts.forEach((start, index) => {
        const end = ends[index];
        assert.equal(end.id, start.id);
        assert.ok(start.ts <= end.ts);
        assert.ok(holds.some(({ tid, ts, dur }) => tid === start.tid && ts <= start.ts && start.ts <= ts + dur + 1));
        assert.ok(waits.some(({ tid, ts, dur }) => tid === end.tid && Math.abs(ts + dur - end.ts) < 1));
      });
      for (const { tid } of [...waits, ...holds]) {
        assert.ok(traceEvents.some(({ ph, name, tid: row }) => ph === 'M' && name === 'thread_name' && row === tid));
      }
    }),
  ),
);

test(
  'the trace has one after the other the waits of a thread that blocks for several locks',
  needs('prompt ends'),
  watched((_, threads) =>
    withDoctor(ON, async (doctor) => {
      const mutexes = namedMutexes(2);
      const guards = [];
      for (const mutex of mutexes) guards.push(await mutex.acquireAsync());
      const { buffer } = mutexes[0];
      const worker = threads.start('doctor-steps', { buffer, names: mutexes.map(({ name }) => name), hasDoctor: true });
      const taken = worker.call('lockAll', 60_000);
      for (const [index, mutex] of mutexes.entries()) {
        await threads.queued(mutex, 1);
        await sleep(5);
        guards[index].unlock();
      }
      await taken;
      const file = path.join(folder, 'several.json');
      doctor.writeTrace(file);
      const { traceEvents } = JSON.parse(fs.readFileSync(file, 'utf8'));
      const waits = traceEvents.filter(({ ph, cat }) => ph === 'X' && cat === 'wait');
      const [first, second] = mutexes.map(({ name }) => waits.find(({ args }) => args.lock === `Mutex ${name}`));
      // Microseconds.
      assert.ok(first.dur >= 4e3 && second.dur >= 4e3, `${first.dur} and ${second.dur}`);
      assert.ok(first.ts + first.dur <= second.ts, `${first.ts} + ${first.dur} and ${second.ts}`);
    }),
  ),
);

test(
  'the trace has its contended holds and unlocks without the option of contention, too, and the report counts none',
  watched(() =>
    withDoctor({ ...ON, contention: false }, async (doctor) => {
      await contend(namedMutexes(1)[0]);
      assert.deepEqual(doctor.report().contention, []);
      const file = path.join(folder, 'uncounted.json');
      doctor.writeTrace(file);
      const { traceEvents } = JSON.parse(fs.readFileSync(file, 'utf8'));
      const of = (phases, category) => traceEvents.filter(({ ph, cat }) => phases.includes(ph) && cat === category);
      const waits = of('Xb', 'wait');
      assert.ok(waits.length >= 2);
      assert.equal(of('Xb', 'hold').length, 2);
      for (const phase of 'sf') assert.equal(of(phase, 'unlock').length, waits.length);
    }),
  ),
);

test(
  'without the option no slices are kept',
  watched(() =>
    withDoctor({ ...ON, trace: false }, async (doctor) => {
      await contend(namedMutexes(1)[0]);
      const file = path.join(folder, 'none.json');
      doctor.writeTrace(file);
      assert.deepEqual(JSON.parse(fs.readFileSync(file, 'utf8')).traceEvents, []);
    }),
  ),
);

/** A slice as the core gives it. */
const slice = (kind, begin, end, more) => ({
  kind,
  begin,
  end,
  lock: { name: null, kind: 'Latch', byteOffset: null },
  place: { threadId: 0, stack: ['inner (/a.js:1:1)', 'outer (/a.js:2:2)'] },
  freed: null,
  ...more,
});

for (const [what, slices, isApart] of [
  ['one inside of another', [slice('wait', 0, 10), slice('wait', 2, 8)], [false, false]],
  ['of one begin, the shorter one first', [slice('wait', 0, 5), slice('wait', 0, 10)], [false, false]],
  ['of one end', [slice('wait', 0, 10), slice('wait', 5, 10)], [false, false]],
  ['one where the other ends', [slice('wait', 0, 5), slice('wait', 5, 10)], [false, false]],
  ['that overlap, the later one first', [slice('wait', 5, 15), slice('wait', 0, 10)], [true, false]],
  [
    'inside of one that another overlaps',
    [slice('wait', 0, 10), slice('wait', 5, 15), slice('wait', 6, 9)],
    [false, true, false],
  ],
  ['a wait and a hold that overlap', [slice('wait', 0, 10), slice('hold', 5, 15)], [false, false]],
  [
    'two threads that overlap',
    [slice('wait', 0, 10), slice('wait', 5, 15, { place: { threadId: 4, stack: [] } })],
    [false, false],
  ],
]) {
  test(`slices of the trace, ${what}: ${isApart.includes(true) ? 'who overlaps gets a row apart' : 'each is on its row'}`, () => {
    const { traceEvents } = toTrace(slices);
    for (const [at, { begin, end }] of slices.entries()) {
      const [whole, from, to] = ['X', 'b', 'e'].map((phase) =>
        traceEvents.filter(
          ({ ph, ts, dur }) =>
            ph === phase && ts === (phase === 'e' ? end : begin) && (dur ?? end - begin) === end - begin,
        ),
      );
      assert.deepEqual([whole.length, from.length, to.length], isApart[at] ? [0, 1, 1] : [1, 0, 0]);
      if (isApart[at]) assert.equal(from[0].id, to[0].id);
    }
  });
}

test('the trace names each row by its thread, that of an unlock too, and each slice by its lock', () => {
  const lock = { name: 'rows', kind: 'Mutex', byteOffset: 4 };
  const { traceEvents, displayTimeUnit } = toTrace([
    slice('wait', 0, 10, { lock, freed: { threadId: 7, at: 9 } }),
    slice('hold', 1, 3, { lock: { ...lock, name: null } }),
    slice('hold', 4, 6),
  ]);
  assert.equal(displayTimeUnit, 'ms');
  const names = new Map(traceEvents.filter(({ ph }) => ph === 'M').map(({ tid, args }) => [tid, args.name]));
  const slices = traceEvents.filter(({ ph }) => ph === 'X');
  assert.deepEqual(
    slices.map(({ name, args, tid }) => [name, args.lock, names.get(tid)]),
    [
      ['wait for Mutex rows', 'Mutex rows', 'thread 0: waits'],
      ['hold Mutex at byte 4', 'Mutex at byte 4', 'thread 0: contended holds'],
      ['hold Latch', 'Latch', 'thread 0: contended holds'],
    ],
  );
  assert.equal(slices[0].args.stack, 'inner (/a.js:1:1)\nouter (/a.js:2:2)');
  const [start] = traceEvents.filter(({ ph }) => ph === 's');
  const [finish] = traceEvents.filter(({ ph }) => ph === 'f');
  assert.deepEqual([names.get(start.tid), start.ts], ['thread 7: contended holds', 9]);
  assert.deepEqual([names.get(finish.tid), finish.ts, finish.id], ['thread 0: waits', 10, start.id]);
  for (const { pid } of traceEvents) assert.equal(pid, process.pid);
});
