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
