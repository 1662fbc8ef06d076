// Whether waits for names are published; what publishes them is loaded by the first one that is.

const { lazily } = require('../load/lazily.js');

const diagnosis = lazily(() => require('../engine/diagnosis.js'));
const watch = lazily(() => require('./watch.js'));

/** The request waits from now on, if it has not before. */
exports.startWatch = (request, kind) => {
  if (request.watch === undefined && diagnosis().isWatched()) request.watch = watch().beginWatch(request, kind);
};
