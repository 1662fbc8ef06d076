// The one that passes has the value of one other call, which has its value, or whose thread ended before its code knew.

const { describe, hasPassed, mayHavePassed } = require('./describe.js');

exports.check = ({ uses }, report) => {
  const byValue = new Map(uses.map((use) => [use.count, use]));
  const given = new Set();
  for (const use of uses.filter(hasPassed)) {
    const other = byValue.get(use.woken);
    const isMutual = other !== undefined && (hasPassed(other) ? other.woken === use.count : mayHavePassed(other));
    if (!isMutual) report('pairs', `${describe(use)} got ${use.woken}, the value of ${describe(other)}`);
    if (given.has(use.woken)) report('pairs', `${describe(use)} got ${use.woken}, as another did`);
    given.add(use.woken);
  }
};
