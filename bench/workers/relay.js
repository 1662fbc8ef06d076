'use strict';
// A worker's part in lib/relay.js: to give, or to wait and get.

const { join } = require('../lib/crew');
const { openPass } = require('../lib/passes');
const { pin } = require('../lib/pin');
const { ROLES } = require('../lib/relay');

join((_, data) => {
  pin(data.core);
  const pass = openPass(data.pass, false);
  return () => {
    ROLES[data.role](data, pass);
    return true;
  };
});
