// Sends the state of the counters to all open pages, as server-sent events: repeatedly while workers run, and once after each
// other change.

const { setTimeout: pause } = require('node:timers/promises');

const INTERVAL_MS = 50;

exports.Live = class Live {
  #counters;
  #streams = new Set();
  #ending = new AbortController();
  #isLooking = false;
  #isStale = false;
  #latest = '';

  constructor(counters) {
    this.#counters = counters;
  }

  /** Makes a response a stream of events that begins with the present state. */
  open(response) {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.flushHeaders();
    response.write(this.#latest);
    response.on('drain', () => response.write(this.#latest));
    response.on('close', () => this.#streams.delete(response));
    this.#streams.add(response);
  }

  /** Sends the state, and repeats that until no worker runs. */
  async refresh() {
    this.#isStale = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      while (this.#isStale) {
        this.#isStale = false;
        const state = await this.#counters.look(this.#ending.signal);
        this.#send(`data: ${JSON.stringify(state)}\n\n`);
        if (!state.isRunning) continue;
        this.#isStale = true;
        await pause(INTERVAL_MS, undefined, { signal: this.#ending.signal });
      }
    } catch (error) {
      if (!this.#ending.signal.aborted) throw error;
    } finally {
      this.#isLooking = false;
    }
  }

  /** A page that reads slowly misses some events, but never the last one. */
  #send(event) {
    this.#latest = event;
    for (const stream of this.#streams) {
      if (!stream.writableNeedDrain) stream.write(event);
    }
  }

  /** Cancels the read that is pending, if there is one. */
  end() {
    this.#ending.abort();
  }
};
