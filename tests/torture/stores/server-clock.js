// Loaded before everything else, in threads too: to the script in Redis its clock is ahead by the milliseconds of a key (behind, if
// there are fewer than 0), so that it can be stepped while the server runs.

const { createHash } = require('node:crypto');
const script = require('../../../lib/stores/redis/script.js');

const KEY = 'torture:clock';
const CLOCK = "local clock = redis.call('TIME')\n";
const STEPPED = `${CLOCK}
local ahead = tonumber(redis.call('GET', '${KEY}') or '0')
local stepped = clock[1] * 1000000 + clock[2] + ahead * 1000
clock = { math.floor(stepped / 1000000), stepped % 1000000 }
`;

if (!script.SCRIPT.includes(CLOCK)) throw new Error('The script reads its clock in another way');
script.SCRIPT = script.SCRIPT.replace(CLOCK, STEPPED);
script.SHA = createHash('sha1').update(script.SCRIPT).digest('hex');

/** The clock goes on by so many milliseconds, or back. */
exports.stepClock = (server, ms) => server.run('INCRBY', KEY, String(ms));
