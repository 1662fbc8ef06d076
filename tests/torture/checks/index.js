// Proves from the logs of a round that nothing was lost. Each check reports by `report(kind, text)`.

const { checkAbandonment } = require('./abandonment.js');
const { checkDeadlocks } = require('./deadlocks.js');
const { checkEndings } = require('./endings.js');
const { checkEnds, checkExclusion } = require('./holds.js');
const { checkNotifications } = require('./notifications.js');
const { checkOrder } = require('./order.js');
const { checkUses } = require('./uses/index.js');
const { FATES } = require('../log.js');

const nameOf = (fate) => Object.keys(FATES).find((name) => FATES[name] === fate);

/** `summary`: where numbers are collected; `slack`: no wait shorter than this, in milliseconds, counts as overtaken. */
exports.check = (history, report, summary, slack) => {
  for (const { id, died, fate, complaints } of history.threads) {
    const who = `thread ${id}${died ? `, which ended by ${nameOf(fate)}` : ''}`;
    for (const complaint of complaints) {
      const [kind] = complaint.split(':', 1);
      report(kind, `${complaint.slice(kind.length + 2)} (seen by ${who})`);
    }
  }
  const measure = (name, value) => summary.measure(name, value);
  const count = (name) => summary.count('deadlock', name);
  checkEndings(history, report);
  checkExclusion(history, report);
  checkEnds(history, report, measure);
  checkOrder(history, report, measure, slack);
  checkNotifications(history, report, measure);
  checkAbandonment(history, report, (name) => summary.count('abandonment', name));
  checkDeadlocks(history, report, count);
  checkUses(history, report, measure);
};
