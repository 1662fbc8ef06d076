// Programs of `npm run test:audit` that end while something of theirs is held or pending, as they are to.

/** Tells the audit so, by the environment of the program; returns that. */
exports.endsWaiting = (env) => {
  if (env.SABLOCK_AUDIT) env.SABLOCK_AUDIT = 'waiting';
  return env;
};
