const { test } = require('node:test');
const { createJudge } = require('../conformance/deviations.js');
const { faceNames, loadFace, neededBy } = require('../conformance/faces.js');
const { steps } = require('../conformance/waiting.js');
const { watched } = require('../helpers/threads.js');

// A case that hangs with the built-in functions is a deviation too, and need not take long to be one.
const LIMIT_MS = { Atomics: 10_000 };
const judge = createJudge();

for (const faceName of faceNames) {
  for (const { name, run, workers } of steps) {
    test(`${faceName}, ${name}`, neededBy(faceName), (t) =>
      judge(t, faceName, name, () =>
        watched(async (_, threads) => {
          const started = Array.from({ length: workers }, () => threads.start('waiter', { face: faceName }));
          await Promise.all(started.map((worker) => worker.started));
          await run({ face: loadFace(faceName), threads, workers: started });
        }, LIMIT_MS[faceName])(t),
      ),
    );
  }
}
