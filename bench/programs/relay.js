'use strict';
// A worker's part in lib/relay.js: to give, or to wait and get.

const { join } = require('../lib/workers');
const { pin } = require('../lib/clock');
const { ROLES, openPass } = require('../lib/relay');

join((_, data) => {
  pin(data.core);
  const pass = openPass(data.pass, false);
  return () => {
    ROLES[data.role](data, pass);
    return true;
  };
});
