// Does what `late.js` has for the thread behind, and raises a flag once it is done.

const { data, doing, raise, takeSteps } = require('../helpers/inside.js');
const WAYS = require('../helpers/late.js');

const { make, behind } = WAYS[data.way];
const made = make(data.buffer);

takeSteps(([, flag]) => {
  doing(`what is behind ${data.way}`);
  const result = behind(made);
  raise(flag);
  return result;
});
