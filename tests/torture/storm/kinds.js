// The kinds that can be held, in the order in which holds are nested. A kind has `turns` and `awaited`, what a worker does;
// `survive`, a hold of the main thread's that lives through it all (in one of `survives` generations); `check`, of a generation
// that has ended; and `finish`, that it still works. `prepare` makes all ready for the worker in a slot, and `begunToEnd` is
// called once its end has begun. `needs` are the kinds without which it is nothing.

exports.KINDS = [
  require('./kinds/several.js'),
  require('./kinds/rwlock.js'),
  require('./kinds/semaphore.js').semaphore,
  require('./kinds/semaphore.js').fair,
  require('./kinds/mutex.js'),
  require('./kinds/table.js'),
  require('./kinds/once.js'),
  require('./kinds/latch.js'),
  require('./kinds/barrier.js'),
  require('./kinds/late.js'),
];
