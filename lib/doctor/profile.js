// The contention as a profile in pprof's format: protobuf, compressed. Only the fields that are needed of
// https://github.com/google/pprof/blob/main/proto/profile.proto.

const { gzipSync } = require('node:zlib');

const VARINT = 0;
const BYTES = 2;
const LOW_BITS = 0x7fn;

/** Fields of protobuf, one after the other. */
class Message {
  #bytes = [];

  #varint(value) {
    let left = BigInt(value);
    while (left > LOW_BITS) {
      this.#bytes.push(Number(left & LOW_BITS) | 0x80);
      left >>= 7n;
    }
    this.#bytes.push(Number(left));
  }

  number(field, value) {
    if (value === 0) return this;
    this.#varint((field << 3) | VARINT);
    this.#varint(value);
    return this;
  }

  bytes(field, bytes) {
    this.#varint((field << 3) | BYTES);
    this.#varint(bytes.length);
    for (const byte of bytes) this.#bytes.push(byte);
    return this;
  }

  message(field, message) {
    return this.bytes(field, message.#bytes);
  }

  numbers(field, values) {
    const packed = new Message();
    for (const value of values) packed.#varint(value);
    return this.message(field, packed);
  }

  toBuffer() {
    return Buffer.from(this.#bytes);
  }
}

/** Things with numbers from 1 on. */
class Table {
  #ids = new Map();
  messages = [];

  idOf(key, make) {
    let id = this.#ids.get(key);
    if (id === undefined) {
      id = this.#ids.size + 1;
      this.#ids.set(key, id);
      this.messages.push(make(id));
    }
    return id;
  }
}

const FRAME = /^(.*?) \((.*?)(?::(\d+))?(?::(\d+))?\)$/;

class Profile {
  #strings = new Map([['', 0]]);
  #functions = new Table();
  #locations = new Table();
  #samples = [];

  #string(text) {
    if (!this.#strings.has(text)) this.#strings.set(text, this.#strings.size);
    return this.#strings.get(text);
  }

  #location(frame) {
    return this.#locations.idOf(frame, (id) => {
      const [, name, file, line = '0'] = FRAME.exec(frame) ?? ['', frame, ''];
      const functionId = this.#functions.idOf(`${name}\n${file}`, (number) =>
        new Message()
          .number(1, number)
          .number(2, this.#string(name))
          .number(3, this.#string(name))
          .number(4, this.#string(file)),
      );
      const place = new Message().number(1, functionId).number(2, Number(line));
      return new Message().number(1, id).message(4, place);
    });
  }

  add(stack, lock, threadId, count, ms) {
    const label = (key, text) => new Message().number(1, this.#string(key)).number(2, this.#string(text));
    const sample = new Message()
      .numbers(
        1,
        (stack.length === 0 ? ['(unknown)'] : stack).map((frame) => this.#location(frame)),
      )
      .numbers(2, [count, Math.round(ms * 1e6)])
      .message(3, label('lock', lock));
    // Several that have ended have none, and one that nobody has seen. As a number pprof would leave out that of the main thread: 0.
    if (threadId >= 0) sample.message(3, label('thread', `${threadId}`));
    this.#samples.push(sample);
  }

  encode(durationMs) {
    const type = (name, unit) => new Message().number(1, this.#string(name)).number(2, this.#string(unit));
    const types = [type('contentions', 'count'), type('delay', 'nanoseconds')];
    const profile = new Message();
    for (const each of types) profile.message(1, each);
    for (const sample of this.#samples) profile.message(2, sample);
    for (const location of this.#locations.messages) profile.message(4, location);
    for (const each of this.#functions.messages) profile.message(5, each);
    const period = type('contentions', 'count');
    const now = BigInt(Date.now()) * 1_000_000n;
    for (const text of this.#strings.keys()) profile.bytes(6, Buffer.from(text));
    const nanoseconds = Math.round(durationMs * 1e6);
    return profile.number(9, now).number(10, nanoseconds).message(11, period).number(12, 1).toBuffer();
  }
}

const { nameOf } = require('./trace.js');

/**
 * By the places that unlocked, as Go's mutex profile; or by those that waited, as its block profile. Waits whose unlock nobody has
 * seen are of an unknown place.
 */
exports.encodeProfile = (contention, by, durationMs) => {
  const profile = new Profile();
  for (const { lock, waits, totalMs, waiters, unlockers } of contention) {
    const delays = by === 'waiter' ? waiters : unlockers;
    let [restWaits, restMs] = [waits, totalMs];
    for (const { place, waits: count, totalMs: ms } of delays) {
      profile.add(place.stack, nameOf(lock), place.threadId, count, ms);
      restWaits -= count;
      restMs -= ms;
    }
    if (restWaits > 0) profile.add([], nameOf(lock), -1, restWaits, Math.max(restMs, 0));
  }
  return gzipSync(profile.encode(durationMs));
};
