// A writer has nobody beside it; the promises of a thread keep their order; whoever comes after a dead writer sees the mark.

const { checkAlone, checkCallOrder, checkMarks } = require('./alone.js');

const isWriter = ({ verbName }) => verbName.startsWith('write.') || verbName === 'tryUpgrade';

exports.check = ({ uses }, report) => {
  checkAlone(uses, isWriter, report);
  checkCallOrder(uses, isWriter, report);
  checkMarks(uses, isWriter, report);
};
