// Time as it passes: tests put timers and clocks of their own in the place of these, once the doctor is loaded.

const { clearInterval, setInterval } = require('node:timers');

exports.now = performance.now.bind(performance);
exports.setInterval = setInterval;
exports.clearInterval = clearInterval;
