// A name that is held alone has nobody beside its holder; the promises of a thread keep their order; whoever comes after one that
// ended inside sees the mark.

const { checkAlone, checkCallOrder, checkMarks } = require('./alone.js');

const isExclusive = ({ verbName }) => verbName.startsWith('name.exclusive.');

exports.check = ({ uses }, report) => {
  checkAlone(uses, isExclusive, report);
  checkCallOrder(uses, isExclusive, report);
  checkMarks(uses, isExclusive, report);
};
