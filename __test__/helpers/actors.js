// Workers that run functions which a test sends them; see `__test__/workers/actor.js`.

/** Starts them. Each `actor.do(fn, ...args)` returns a promise of what `fn(here, ...args)` returns in its thread. */
exports.startActors = async (threads, count, buffer, { prepare, ...options } = {}, ...args) => {
  const actors = Array.from({ length: count }, () => {
    const actor = threads.start('actor', { buffer }, options);
    actor.do = (fn, ...rest) => actor.call(String(fn), ...rest);
    return actor;
  });
  const ready = prepare ?? (() => true);
  await Promise.all(actors.map((actor) => actor.do(ready, ...args)));
  return actors;
};

/** For `startBusyActor`: asks for a name of the process. */
exports.askForName = (here, name) => [here.sablock.locks.request(name, () => 'had')];

/**
 * One that has asked for something, and is busy from then on. `ask(here, ...args)` returns `[promise]`, or a promise of that, once it
 * has asked. `asked` is a promise of what comes of it, or of its error's code or name; `goOn()` lets its event loop turn again.
 */
exports.startBusyActor = async (threads, ask, ...args) => {
  const [actor] = await exports.startActors(threads, 1);
  const [RUNNING, GO] = [0, 1];
  const asked = actor.do(
    async (here, source, args, [running, go]) => {
      const ask = new Function(`'use strict'; return ${source};`)();
      const [request] = await ask(here, ...args);
      const outcome = request.catch(({ code, name }) => (typeof code === 'string' ? code : name));
      here.raise(running);
      here.waitForFlag(go);
      return outcome;
    },
    String(ask),
    args,
    [RUNNING, GO],
  );
  await threads.raised(RUNNING);
  return { actor, asked, goOn: () => threads.raise(GO) };
};
