// etcd's JSON gateway, over the HTTP of Node.js: calls, and one stream of what is deleted. Keys and values are base64 there, and
// numbers of 64 bits are text.

const http = require('node:http');
const https = require('node:https');
const clock = require('../../load/clock.js');
const { storeError } = require('../errors.js');
const { readConnection } = require('./connection.js');

/** Codes of gRPC. */
const NO_USERS = 9;
const UNAUTHENTICATED = 16;
const MOST_CODE = 16;
/** Errors of a token: the users' rights have changed since it was given, it is over, or there was no need of one before. */
const STALE = /revision of auth store is old|invalid auth token|user name is empty/;
/** No leader, or no quorum: another member may have one. */
const UNAVAILABLE = 14;
const FINAL = new Set([
  3, // INVALID_ARGUMENT: a wrong password, or none.
  7, // PERMISSION_DENIED
  12, // UNIMPLEMENTED: an etcd before 3.4, or something else.
]);
/** The part of RESOURCE_EXHAUSTED that is for good: too many requests are so called as well. */
const NO_SPACE = /space exceeded/;
/** A server that says so has applied nothing; one that says another thing, as "request timed out", may have. */
const NO_LEADER = /no leader/;
/** Errors of a call that was not sent. */
const UNSENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN']);
/** The number of calls about keys that are under way at a time: each has a socket of its own. */
const MOST = 32;
/** The number of further tokens that a call asks for: rights may change while it does. */
const TOKENS = 3;
/** The lease that a call names is over. */
exports.NOT_FOUND = 5;

exports.toText = (bytes) => Buffer.from(bytes ?? '', 'base64').toString('latin1');
exports.toBase64 = (text) => Buffer.from(text, 'latin1').toString('base64');

class Gateway {
  #urls;
  #tls;
  #user;
  #token = null;
  #agents = { 'http:': new http.Agent({ keepAlive: true }), 'https:': new https.Agent({ keepAlive: true }) };
  /** The endpoint that answered last. */
  #at = 0;
  #running = 0;
  /** Calls that wait for their turn, as what settles that. */
  #queue = [];
  #answered = 0;
  #isClosed = false;

  constructor(connection) {
    const { urls, tls, username, password } = readConnection(connection);
    this.#urls = urls;
    this.#tls = tls;
    this.#user = username === '' ? null : { name: username, password };
  }

  /** The answer to one call, which has `limit` milliseconds from its turn on. */
  call(path, body, limit) {
    // The lease waits for nothing.
    return path.startsWith('kv/') ? this.#inTurn(() => this.#call(path, body, limit)) : this.#call(path, body, limit);
  }

  async #inTurn(call) {
    if (this.#running < MOST) this.#running += 1;
    else await new Promise((resolve, reject) => this.#queue.push({ resolve, reject }));
    const before = this.#answered;
    try {
      const answer = await call();
      this.#answered += 1;
      return answer;
    } catch (error) {
      // A server that does not answer this one, nor any other meanwhile, does not answer those behind it.
      if (error.isLate && before === this.#answered) for (const { reject } of this.#queue.splice(0)) reject(error);
      throw error;
    } finally {
      if (this.#queue.length > 0) this.#queue.shift().resolve();
      else this.#running -= 1;
    }
  }

  async #call(path, body, limit) {
    if (this.#isClosed) throw storeError('The connection to etcd was closed.');
    if (this.#user !== null && this.#token === null) await this.#authenticate(limit);
    for (let others = TOKENS; ; others -= 1) {
      const token = this.#token;
      try {
        return await this.#post(path, body, limit);
      } catch (error) {
        if (others === 0 || this.#user === null || !isOfToken(error)) throw error;
        // Another call may have a new one by now, which may be over as well.
        if (this.#token === token || this.#token === null) await this.#authenticate(limit);
      }
    }
  }

  async #authenticate(limit) {
    this.#token = null;
    try {
      const { token } = await this.#post('auth/authenticate', this.#user, limit);
      this.#token = token;
    } catch (error) {
      // A cluster without authentication, as long as that is so.
      if (error.grpc !== NO_USERS) throw error;
      this.#token = '';
    }
  }

  /** Members that do not accept a connection, or do not serve, are passed over. A call is sent again if it surely was not applied. */
  async #post(path, body, limit) {
    for (let others = this.#urls.length - 1; ; others -= 1) {
      const at = this.#at;
      try {
        return await this.#send(path, body, limit);
      } catch (error) {
        if (error.isUnserved) this.#passOver(at);
        if (others === 0 || !(UNSENT.has(error.code) || error.isUnapplied)) throw error;
      }
    }
  }

  /** The next member may be reached. */
  #passOver(at) {
    if (this.#at === at) this.#at = (at + 1) % this.#urls.length;
  }

  #send(path, body, limit) {
    return new Promise((resolve, reject) => {
      const request = this.#request(path, body, reject, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (data) => {
          text += data;
        });
        response.on('error', reject);
        response.on('end', () => {
          clock.clearTimeout(timer);
          try {
            resolve(read(response.statusCode, text));
          } catch (error) {
            reject(error);
          }
        });
      });
      const late = () =>
        request.destroy(Object.assign(new Error(`etcd has not answered within ${limit} ms`), { isLate: true }));
      const timer = clock.setTimeout(late, limit);
      request.once('close', () => clock.clearTimeout(timer));
    });
  }

  /** Calls `onMessage(result)` for each message of a stream, and `onEnd(reason)` once when it is over. Returns how it is ended. */
  stream(path, body, onMessage, onEnd) {
    let isOver = false;
    const end = (reason) => {
      if (isOver) return;
      isOver = true;
      request.destroy();
      onEnd(reason);
    };
    const fail = ({ message }) => end(message);
    const at = this.#at;
    const request = this.#request(path, body, fail, (response) => {
      let rest = '';
      response.setEncoding('utf8');
      response.on('data', (data) => {
        const lines = (rest + data).split('\n');
        rest = lines.pop();
        for (const line of lines) {
          if (isOver || line === '') continue;
          const answer = readJson(line) ?? {};
          const { result } = answer;
          if (result !== undefined && !result.canceled) {
            onMessage(result);
            continue;
          }
          if (result === undefined) this.#passOver(at);
          const failure = result === undefined ? failureOf(answer) : { message: result.cancel_reason };
          // The next call asks for a new one.
          if (failure !== null && isOfToken(failure)) this.#token = null;
          end(failure?.message);
        }
      });
      response.on('error', fail);
      response.on('close', () => end());
    });
    return () => end();
  }

  #request(path, body, onError, onResponse) {
    const at = this.#at;
    const url = this.#urls[at];
    const { request } = url.protocol === 'https:' ? https : http;
    const text = JSON.stringify(body);
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    if (this.#token) headers.authorization = this.#token;
    const options = { ...this.#tls, method: 'POST', headers, agent: this.#agents[url.protocol] };
    const made = request(new URL(`/v3/${path}`, url.origin), options, onResponse);
    made.on('error', (error) => {
      // One that was forgotten on its way while it was idle: so are the others, most likely.
      if (made.reusedSocket) this.#dropIdle();
      this.#passOver(at);
      onError(error);
    });
    made.end(text);
    return made;
  }

  #dropIdle() {
    for (const { freeSockets } of Object.values(this.#agents))
      for (const socket of Object.values(freeSockets).flat()) socket.destroy();
  }

  close() {
    this.#isClosed = true;
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }
}

/** The object that a text is; null if it is none, as from a gateway in between. */
function readJson(text) {
  try {
    const value = JSON.parse(text);
    return value instanceof Object ? value : null;
  } catch {
    return null;
  }
}

/**
 * The failure that an answer tells, in a stream by an object of its own; null if it tells none. etcd 3.6 has `message` only, beside
 * which others have `error`, and in a stream `code` for `grpc_code`.
 */
function failureOf(answer) {
  const {
    message,
    error = message,
    code,
    grpc_code: grpc = code,
  } = answer.error instanceof Object ? answer.error : answer;
  // Others, as a proxy, tell the status of HTTP as their code.
  return typeof error === 'string' && grpc >= 0 && grpc <= MOST_CODE ? { message: error, grpc } : null;
}

/** Tokens end after some minutes, and with each change of the users' rights. */
const isOfToken = ({ grpc, message }) => grpc === UNAUTHENTICATED || STALE.test(message);

/** The object of an answer, or its error. */
function read(status, text) {
  const answer = readJson(text);
  if (status === 200 && answer !== null && answer.error === undefined) return answer.result ?? answer;
  const failure = failureOf(answer ?? {});
  if (failure === null) {
    const message = `This is no etcd of version 3.4 or later: its answer has status ${status}.`;
    throw Object.assign(storeError(message, { isFinal: status < 500 }), { isUnserved: status >= 500 });
  }
  const { message: reason, grpc } = failure;
  if (NO_SPACE.test(reason)) {
    throw storeError(
      `etcd answers: ${reason}. Its cluster takes no writes (alarm NOSPACE): compact and defragment it, and disarm the alarm.`,
      { isFinal: true },
    );
  }
  const isUnserved = grpc === UNAVAILABLE;
  const isUnapplied = isUnserved && NO_LEADER.test(reason);
  throw Object.assign(storeError(`etcd answers: ${reason}.`, { isFinal: FINAL.has(grpc) }), {
    grpc,
    isUnserved,
    isUnapplied,
  });
}

exports.Gateway = Gateway;
