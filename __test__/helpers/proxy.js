// A TCP proxy before a server, which tests cut and delay.

const net = require('node:net');
const { setTimeout: sleep } = require('node:timers/promises');

/** `{ url, target, delay, loses, weather, taken, accepted, open, cut(), drop(), heal() }`: `url` is the server's, by the proxy. */
exports.startProxy = async (t, target) => {
  const sockets = new Set();
  const proxy = {
    /** The server that the next connections lead to. */
    target,
    /** The time that each piece of data takes, in milliseconds. */
    delay: 0,
    /** `(data, toServer, line)`: whether this piece is lost; `line` is an object for each connection, and `line.reset()` ends it. */
    loses: () => false,
    /** `(line, toServer, data)`: what goes on in the place of this piece (see `createWeather()`), once `delay` is over. */
    weather: (_line, _toServer, data) => [{ data, ms: 0 }],
    /** The number of pieces that there were. */
    taken: 0,
    /** The number of connections that there were. */
    accepted: 0,
    /** The number of connections that there are. */
    get open() {
      return sockets.size / 2;
    },
    isCut: false,
    /** From now on nothing passes, and nobody learns of it: a cable is cut. */
    cut() {
      proxy.isCut = true;
      for (const socket of sockets) socket.pause();
    },
    /** Every connection there is ends. */
    drop() {
      for (const socket of sockets) socket.destroy();
    },
    /** Lets pass what was held back. */
    heal() {
      proxy.isCut = false;
      for (const socket of sockets) socket.resume();
    },
  };
  const server = net.createServer((near) => {
    const line = { reset: () => near.resetAndDestroy() };
    proxy.accepted += 1;
    const { hostname, port } = new URL(proxy.target);
    const far = net.connect(Number(port), hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ]) {
      sockets.add(from);
      if (proxy.isCut) from.pause();
      // Pieces that are sent first arrive first, when the delay becomes shorter too.
      let last = Promise.resolve();
      from.on('data', (data) => {
        proxy.taken += 1;
        if (proxy.loses(data, from === near, line)) return;
        for (const { data: part, ms, due, ends } of proxy.weather(line, from === near, data)) {
          const delay = proxy.delay + ms;
          const arrives = delay === 0 ? due : Promise.all([sleep(delay), due]);
          last = last.then(() => arrives).then(() => (ends ? to.end(part) : to.write(part)));
        }
      });
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        // Pieces that were sent before arrive, as in networks.
        last.then(() => to.destroy());
      });
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const url = new URL(target);
  url.port = String(server.address().port);
  proxy.url = url.href.replace(/\/$/, '');
  return proxy;
};
