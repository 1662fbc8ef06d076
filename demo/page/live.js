// Sends how the counters stand to all open pages, as server-sent events: again and again while workers run, once when
// something else has changed.

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

  /** Makes a response a stream of events that begins with how things stand now. */
  open(response) {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.flushHeaders();
    response.write(this.#latest);
    response.on('drain', () => response.write(this.#latest));
    response.on('close', () => this.#streams.delete(response));
    this.#streams.add(response);
  }

  /** Looks, and goes on looking until no worker runs. */
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

  /** A page that reads slowly misses what came between, never the last. */
  #send(event) {
    this.#latest = event;
    for (const stream of this.#streams) {
      if (!stream.writableNeedDrain) stream.write(event);
    }
  }

  /** Takes back the read that is pending, if one is. */
  end() {
    this.#ending.abort();
  }
};
