// A keeper has the locks of one store, in the lock worker. Each has a connection; how its locks are kept is a subclass (leases,
// sessions), and the kind of server one of that, which has
//
// - `begin()`: a promise of a connection; `endConnection(one)`; `connections`: how many there are;
// - `lockOnce(ticket)`: a promise of a grant, or of null (see `Connection.lock()` in retry.js; `GRANT` in service.js); `cancel(ticket)`, `release(ticket, isAbandoned)`,
//   `markConsistent(ticket)`: what becomes of it;
// - `ping()`: a promise of a round trip; `query({ names })`: one of who holds elsewhere; `flush()`: fulfilled once the server knows of
//   what was released; `close()`.

const clock = require('../load/clock.js');
const { Connection } = require('./retry.js');

exports.Keeper = class {
  settings;
  desk;
  /** The connection, of which the current one is the session, or the link. */
  connection;
  counts = { grants: 0, renewals: 0, losses: 0, roundTripMs: null };

  constructor(store, description, desk) {
    this.settings = description.settings;
    this.desk = desk;
    const [begin, end] = [() => this.begin(), (one) => this.endConnection(one)];
    this.connection = new Connection(store, description, begin, end);
  }

  lock(ticket) {
    return this.connection.lock(ticket, () => {
      ticket.asked = this.lockOnce(ticket);
      return ticket.asked;
    });
  }

  check() {
    return this.connection.ask(async () => {
      await this.connection.get();
      const begun = clock.now();
      await this.ping();
      return { roundTripMs: clock.now() - begun };
    });
  }

  stats() {
    return { connects: this.connection.count, ...this.counts, connections: this.connections };
  }
};
