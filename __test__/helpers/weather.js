// Hostile networks for `startProxy()`: each connection delays each direction in its own way, which changes; what is sent arrives in
// pieces; answers come after the next question; one half of a connection closes; single messages that a server pushes are lost, or
// come twice.

const { setTimeout: sleep } = require('node:timers/promises');

/** The longest delay of a direction for a while, in milliseconds. */
const DELAYS = [0, 0, 3, 30];
const LONGEST_WHILE_MS = 400;
/** The part that is lost of what a server pushes, and the part that comes twice. */
const LOST = 0.15;
const TWICE = 0.15;
const SPLIT = 0.2;
/** The part of answers that wait for the next question, and for how long at most. */
const BEHIND = 0.1;
const LONGEST_BEHIND_MS = 60;

/** By kind of store: whether that piece of data is one message that nobody has asked for, and nothing else. */
const PUSHES = {
  // Its waits are answers.
  mysql: () => false,
  postgres: () => false,
  redis: (data) => /^[*>]3\r\n\$7\r\nmessage\r\n\$\d+\r\n[^\r]*\r\n\$\d+\r\n[^\r]*\r\n$/.test(data.toString('latin1')),
  etcd: (data) => /^[0-9a-f]+\r\n\{"result":\{.*"events":.*\}\n\r\n$/.test(data.toString('latin1')),
};

/**
 * The weather of a proxy before a store of that kind: `(line, toServer, data)` returns what is sent on in its place, in order, each
 * after so many milliseconds, and not before `due`; `ends`: then nothing follows in that direction. `seen` counts what it did.
 */
exports.createWeather = (kind, random, { closes = 0, losesPushes = true } = {}) => {
  const isPush = PUSHES[kind];
  const lostOf = losesPushes ? LOST : 0;
  const seen = { lost: 0, twice: 0, split: 0, closed: 0, behind: 0 };
  /** Returns how long this piece is on its way. */
  const delayOf = (line, toServer) => {
    line.ways ??= new Map();
    let way = line.ways.get(toServer);
    if (way === undefined || performance.now() > way.until) {
      way = { longest: random.pick(DELAYS), until: performance.now() + random.below(LONGEST_WHILE_MS) };
      line.ways.set(toServer, way);
    }
    return random.below(way.longest + 1);
  };
  /** Fulfilled with the client's next question, or when it does not come. */
  const nextQuestion = (line) => {
    const asked = new Promise((resolve) => {
      line.onQuestion = resolve;
    });
    return Promise.race([asked, sleep(LONGEST_BEHIND_MS)]);
  };
  const weather = (line, toServer, data) => {
    if (toServer && line.onQuestion !== undefined) {
      line.onQuestion();
      line.onQuestion = undefined;
    }
    const piece = (part) => ({ data: part, ms: delayOf(line, toServer) });
    if (!toServer && isPush(data)) {
      const chance = random.next();
      if (chance < lostOf) {
        seen.lost += 1;
        return [];
      }
      if (chance < lostOf + TWICE) {
        seen.twice += 1;
        return [piece(data), piece(data)];
      }
    }
    if (random.next() < closes) {
      seen.closed += 1;
      return [{ ...piece(data), ends: true }];
    }
    if (!toServer && line.onQuestion === undefined && random.next() < BEHIND) {
      seen.behind += 1;
      return [{ ...piece(data), due: nextQuestion(line) }];
    }
    if (data.length > 1 && random.next() < SPLIT) {
      seen.split += 1;
      const at = 1 + random.below(data.length - 1);
      return [piece(data.subarray(0, at)), piece(data.subarray(at))];
    }
    return [piece(data)];
  };
  return Object.assign(weather, { seen });
};
