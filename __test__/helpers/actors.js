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

/**
 * One that has asked for a name, and is busy from then on: `asked` is a promise of what its request returns, or of its error's name;
 * `goOn()` lets its event loop turn again.
 */
exports.startBusyActor = async (threads, name) => {
  const [actor] = await exports.startActors(threads, 1);
  const [RUNNING, GO] = [0, 1];
  const asked = actor.do(
    (here, name, running, go) => {
      const request = here.sablock.locks.request(name, () => 'had').catch(({ name }) => name);
      here.raise(running);
      here.waitForFlag(go);
      return request;
    },
    name,
    RUNNING,
    GO,
  );
  await threads.raised(RUNNING);
  return { actor, asked, goOn: () => threads.raise(GO) };
};
