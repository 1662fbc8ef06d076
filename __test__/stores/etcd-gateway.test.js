// What a call to etcd comes to, by what its members answer. They are written here.

const assert = require('node:assert/strict');
const dns = require('node:dns');
const http = require('node:http');
const { test } = require('node:test');
const { Gateway } = require('../../lib/stores/etcd/gateway.js');
const { serveHttp } = require('../helpers/http.js');
const { watched } = require('../helpers/threads.js');

const LIMIT = 30_000;
const DONE = [200, { done: true }];
const TOKEN = [200, { token: 'a token' }];
const HALF = [200, { done: true }, 'is cut off'];

/** Failures as the versions of etcd tell them: the answer of a call, and the object in a stream. */
const FORMS = {
  3.4: {
    failure: (code, message) => ({ error: message, message, code }),
    inStream: (code, message) => ({ grpc_code: code, http_code: 500, message, http_status: 'Internal Server Error' }),
  },
  3.6: {
    failure: (code, message) => ({ code, message, details: [] }),
    inStream: (code, message) => ({ code, message, details: [] }),
  },
};

const failuresOf = ({ failure }) => ({
  STALE: [401, failure(16, 'etcdserver: invalid auth token')],
  OLD: [400, failure(3, 'etcdserver: revision of auth store is old')],
  NAMELESS: [400, failure(3, 'etcdserver: user name is empty')],
  NO_USERS: [400, failure(9, 'etcdserver: authentication is not enabled')],
  WRONG: [400, failure(3, 'etcdserver: authentication failed, invalid user ID or password')],
  UNKNOWN: [404, failure(12, 'Method Not Allowed')],
  DENIED: [403, failure(7, 'etcdserver: permission denied')],
  LATE: [503, failure(14, 'etcdserver: request timed out')],
  NO_LEADER: [503, failure(14, 'etcdserver: no leader')],
  BUSY: [429, failure(8, 'etcdserver: too many requests')],
  FULL: [400, failure(8, 'etcdserver: mvcc: database space exceeded')],
});

const inForms = (makeCases) =>
  Object.entries(FORMS).flatMap(([version, form]) =>
    Object.entries(makeCases(failuresOf(form))).map(([what, of]) => [version, what, of]),
  );

/** A member that gives these answers, by path, the last of them for ever; `calls` has what it was asked, and with which token. */
async function startMember(t, answers) {
  const member = { calls: [] };
  member.url = await serveHttp(t, async (request, response) => {
    await request.toArray();
    const path = request.url.slice('/v3/'.length);
    member.calls.push([path, request.headers.authorization]);
    const list = answers[path];
    const [status, answer, isCutOff] = list.length > 1 ? list.shift() : list[0];
    const text = typeof answer === 'string' ? answer : JSON.stringify(answer);
    response.writeHead(status, { 'content-length': text.length });
    if (isCutOff) response.write(text.slice(1), () => response.destroy());
    else response.end(text);
  });
  return member;
}

function open(t, members, user = {}) {
  const gateway = new Gateway({ endpoints: members.map(({ url }) => url), ...user });
  t.after(() => gateway.close());
  return gateway;
}

const USER = { username: 'somebody', password: 'a secret' };
const AUTH = ['auth/authenticate', undefined];
const CALL = ['kv/txn', 'a token'];

/** By what the members answer a user's calls: what was asked for, and the error. */
const asked = ({ STALE, OLD, NAMELESS, NO_USERS, WRONG, UNKNOWN, DENIED, LATE }) => ({
  'nothing special': [[DONE], [TOKEN], [AUTH, CALL]],
  'that the token is over': [[STALE, DONE], [TOKEN], [AUTH, CALL, AUTH, CALL]],
  'that its rights have changed': [[OLD, DONE], [TOKEN], [AUTH, CALL, AUTH, CALL]],
  'that every token is over': [[STALE], [TOKEN], [AUTH, CALL, AUTH, CALL, AUTH, CALL, AUTH, CALL], { grpc: 16 }],
  'that it has no users': [[DONE], [NO_USERS], [AUTH, ['kv/txn', undefined]]],
  'that it has users by now': [
    [NAMELESS, DONE],
    [NO_USERS, TOKEN],
    [AUTH, ['kv/txn', undefined], AUTH, CALL],
  ],
  'that the user may not': [[DENIED, DONE], [TOKEN], [AUTH, CALL], { isFinal: true, grpc: 7 }],
  'that it was too late, and may have done it': [[LATE, DONE], [TOKEN], [AUTH, CALL], { isFinal: false, grpc: 14 }],
  'that the password is wrong': [[DONE], [WRONG], [AUTH], { isFinal: true, grpc: 3 }],
  'that it does not know the call': [[UNKNOWN], [TOKEN], [AUTH, CALL], { isFinal: true, grpc: 12 }],
});

for (const [version, what, [calls, tokens, expected, error]] of inForms(asked)) {
  test(
    `etcd ${version}: a user's call that is answered ${what} ${error === undefined ? 'is done' : 'fails'}, and is sent no more often than it may be`,
    watched(async (t) => {
      const member = await startMember(t, { 'kv/txn': [...calls], 'auth/authenticate': [...tokens] });
      const answer = open(t, [member], USER).call('kv/txn', {}, LIMIT);
      if (error === undefined) assert.deepEqual(await answer, { done: true });
      else await assert.rejects(answer, { code: 'ERR_LOCK_STORE', ...error });
      assert.deepEqual(member.calls, expected);
    }),
  );
}

/** By what the first of two members answers: whether the call is done by the other, whether the next one goes there, and the error. */
const passed = ({ NO_LEADER, LATE, DENIED, BUSY, FULL }) => ({
  'that it has no leader': [NO_LEADER, true, true],
  'that it was too late': [LATE, false, true, { isFinal: false, message: /request timed out/ }],
  'what a proxy says': [[502, '<html>'], false, true, { isFinal: false, message: /no etcd.*502/ }],
  'what a proxy says in JSON': [
    [503, { message: 'no upstream' }],
    false,
    true,
    { isFinal: false, message: /no etcd.*503/ },
  ],
  'what a proxy says with a code': [
    [503, { code: 503, message: 'no upstream' }],
    false,
    true,
    { isFinal: false, message: /no etcd.*503/ },
  ],
  'what is no etcd': [[404, '<html>'], false, false, { isFinal: true, message: /no etcd.*404/ }],
  'what is no object': [[200, 'null'], false, false, { isFinal: true, message: /no etcd.*200/ }],
  'that the user may not': [DENIED, false, false, { isFinal: true, message: /permission denied/ }],
  'with half an answer': [HALF, false, false, { code: 'ECONNRESET' }],
  'that it has too many requests': [BUSY, false, false, { isFinal: false, message: /too many requests/ }],
  'that its disk is full': [FULL, false, false, { isFinal: true, message: /NOSPACE/ }],
});

for (const [version, what, [answer, isDone, isPassedOver, error]] of inForms(passed)) {
  test(
    `etcd ${version}: a member that answers ${what} is ${isPassedOver ? '' : 'not '}passed over, and its call is ${isDone ? '' : 'not '}sent to the next`,
    watched(async (t) => {
      const [first, second] = [
        await startMember(t, { 'kv/txn': [answer, DONE] }),
        await startMember(t, { 'kv/txn': [DONE] }),
      ];
      const gateway = open(t, [first, second]);
      const answered = gateway.call('kv/txn', {}, LIMIT);
      if (isDone) assert.deepEqual(await answered, { done: true });
      else await assert.rejects(answered, { code: 'ERR_LOCK_STORE', ...error });
      assert.deepEqual([first.calls.length, second.calls.length], [1, isDone ? 1 : 0]);
      assert.deepEqual(await gateway.call('kv/txn', {}, LIMIT), { done: true });
      assert.deepEqual(
        [first.calls.length, second.calls.length],
        [isPassedOver ? 1 : 2, Number(isDone) + Number(isPassedOver)],
      );
    }),
  );
}

test(
  'behind the last member comes the first again',
  watched(async (t) => {
    const { NO_LEADER } = failuresOf(FORMS[3.6]);
    const members = [
      await startMember(t, { 'kv/txn': [NO_LEADER, DONE] }),
      await startMember(t, { 'kv/txn': [NO_LEADER, DONE] }),
    ];
    const gateway = open(t, members);
    await assert.rejects(gateway.call('kv/txn', {}, LIMIT), { code: 'ERR_LOCK_STORE', message: /no leader/ });
    assert.deepEqual(await gateway.call('kv/txn', {}, LIMIT), { done: true });
    assert.deepEqual(
      members.map(({ calls }) => calls.length),
      [2, 1],
    );
  }),
);

const STREAM_ENDS = Object.entries(FORMS).flatMap(([version, { failure, inStream }]) =>
  Object.entries({
    'an error': { error: inStream(16, 'etcdserver: invalid auth token') },
    'the error of a call': failure(16, 'etcdserver: invalid auth token'),
  }).map(([what, lastLine]) => [version, what, lastLine]),
);

for (const [version, what, lastLine] of STREAM_ENDS) {
  test(
    `etcd ${version}: a stream that ends with ${what} says which, and the next one is of another member, with another token`,
    watched(async (t) => {
      const line = (message) => `${JSON.stringify(message)}\n`;
      const members = [
        await startMember(t, {
          watch: [[200, line({ result: { created: true } }) + line(lastLine)]],
          'auth/authenticate': [TOKEN],
          'kv/txn': [DONE],
        }),
        await startMember(t, {
          watch: [[200, line({ result: { created: true } })]],
          'auth/authenticate': [TOKEN],
          'kv/txn': [DONE],
        }),
      ];
      const gateway = open(t, members, USER);
      await gateway.call('kv/txn', {}, LIMIT);
      const watch = () =>
        new Promise((resolve) => {
          const messages = [];
          gateway.stream(
            'watch',
            {},
            (message) => messages.push(message),
            (reason) => resolve([messages, reason]),
          );
        });
      assert.deepEqual(await watch(), [[{ created: true }], 'etcdserver: invalid auth token']);
      await gateway.call('kv/txn', {}, LIMIT);
      assert.deepEqual(members[1].calls, [AUTH, CALL]);
      assert.deepEqual(await watch(), [[{ created: true }], undefined]);
      assert.deepEqual(members[1].calls.at(-1), ['watch', 'a token']);
    }),
  );
}

for (const code of ['ENOTFOUND', 'EAI_AGAIN']) {
  test(`a member whose name nobody knows is passed over, and its call is sent to the next: ${code}`, async (t) => {
    const { lookup } = dns;
    t.mock.method(dns, 'lookup', (host, options, done) => {
      if (host === 'nobody') done(Object.assign(new Error('not known'), { code }));
      else lookup(host, options, done);
    });
    const member = await startMember(t, { 'kv/txn': [DONE] });
    const gateway = open(t, [{ url: 'http://nobody:1' }, member]);
    for (const _ of [1, 2]) assert.deepEqual(await gateway.call('kv/txn', {}, LIMIT), DONE[1]);
    assert.equal(dns.lookup.mock.calls.filter(({ arguments: [host] }) => host === 'nobody').length, 1);
  });
}

/** A member that answers when the test says so: `open` has the paths that are under way, and what answers each, in order. */
async function startSlow(t) {
  const member = { open: [] };
  member.url = await serveHttp(t, async (request, response) => {
    const body = JSON.parse((await request.toArray()).join(''));
    const path = request.url.slice('/v3/'.length);
    response.on('error', () => {});
    member.open.push({ path, body, response, answer: () => response.end(JSON.stringify({ done: body.number })) });
  });
  return member;
}

test(
  'of calls about keys 32 are under way at a time, in the order of the calls; the lease waits for none of them',
  watched(async (t, threads) => {
    const member = await startSlow(t);
    const gateway = open(t, [member]);
    const calls = Array.from({ length: 35 }, (_, number) => gateway.call('kv/txn', { number }, LIMIT));
    await threads.until('as many as may are under way', () => member.open.length === 32);
    const lease = gateway.call('lease/keepalive', { number: 'of the lease' }, LIMIT);
    await threads.until('the lease is renewed', () => member.open.length === 33);
    member.open.pop().answer();
    assert.deepEqual(await lease, { done: 'of the lease' });
    for (const expected of [32, 33, 34, 35]) {
      if (expected === 34) calls.push(gateway.call('kv/txn', { number: 35 }, LIMIT));
      member.open.shift().answer();
      await threads.until('the next is under way', () => member.open.length === 32);
      assert.equal(member.open.at(-1).body.number, expected);
    }
    gateway.close();
    await Promise.allSettled(calls);
  }),
);

test(
  'a call that is not answered in time fails with those that wait behind it, but not if another was answered meanwhile',
  watched(async (t, threads) => {
    for (const [isAnswered, hasBegun] of [
      [false, false],
      [true, false],
      [false, true],
    ]) {
      const member = await startSlow(t);
      const gateway = open(t, [member]);
      const outcomeOf = (call) =>
        call.then(
          ({ done }) => done,
          ({ message }) => message,
        );
      const first = outcomeOf(gateway.call('kv/txn', { number: 0 }, 1500));
      const others = Array.from({ length: 31 }, (_, index) =>
        outcomeOf(gateway.call('kv/txn', { number: index + 1 }, LIMIT)),
      );
      await threads.until('as many as may are under way', () => member.open.length === 32);
      if (hasBegun) for (const { response } of member.open) response.write('{');
      const behind = [1, 2, 3].map((number) =>
        outcomeOf(gateway.call('kv/txn', { number: `behind ${number}` }, LIMIT)),
      );
      if (isAnswered) {
        member.open.find(({ body }) => body.number === 31).answer();
        assert.equal(await others[30], 31);
        await threads.until('one of those behind is under way', () => member.open.length === 33);
      }
      assert.equal(await first, 'etcd has not answered within 1500 ms');
      if (!isAnswered)
        assert.deepEqual(await Promise.all(behind), Array(3).fill('etcd has not answered within 1500 ms'));
      else {
        await threads.until('the next is under way', () => member.open.length === 34);
        assert.equal(member.open.at(-1).body.number, 'behind 2');
      }
      gateway.close();
    }
  }),
);

test(
  'a member whose answer has begun and does not go on is passed over by the next call',
  watched(async (t, threads) => {
    const [broken, member] = [await startSlow(t), await startMember(t, { 'kv/txn': [DONE] })];
    const gateway = open(t, [broken, member]);
    const call = gateway.call('kv/txn', {}, 1500);
    call.catch(() => {});
    await threads.until('it has been asked', () => broken.open.length > 0);
    broken.open[0].response.write('{');
    await assert.rejects(call, { message: 'etcd has not answered within 1500 ms' });
    assert.deepEqual(await gateway.call('kv/txn', {}, LIMIT), DONE[1]);
    assert.equal(broken.open.length, 1);
  }),
);

test(
  'a call whose connection ends fails alone: those behind it have their turn',
  watched(async (t, threads) => {
    const member = await startSlow(t);
    const gateway = open(t, [member]);
    const calls = Array.from({ length: 33 }, (_, number) => gateway.call('kv/txn', { number }, LIMIT));
    const outcomes = Promise.allSettled(calls);
    await threads.until('as many as may are under way', () => member.open.length === 32);
    member.open[0].response.destroy();
    await threads.until('the last has its turn', () => member.open.length === 33);
    for (const { answer } of member.open.slice(1)) answer();
    assert.equal((await outcomes).filter(({ status }) => status === 'rejected').length, 1);
  }),
);

test(
  'what a stream says comes whole, however it is cut; after its end it says nothing, and that is told once',
  watched(async (t, threads) => {
    let response;
    const url = await serveHttp(t, (_request, opened) => {
      response = opened;
    });
    const gateway = open(t, [{ url }]);
    const watch = () => {
      response = undefined;
      const it = { messages: [], ends: [] };
      it.end = gateway.stream(
        'watch',
        {},
        (message) => it.messages.push(message),
        (reason) => it.ends.push(reason),
      );
      return threads.until('it is open', () => response !== undefined).then(() => it);
    };
    const one = await watch();
    const text = Buffer.from(
      '{"result":{"key":"naïve"}}\n\n{"result":{"key":2}}\n{"result":{"canceled":true,"cancel_reason":"compacted"}}\n{"result":{"key":3}}\n',
    );
    const end = text.indexOf('{"result":{"canceled"');
    for (const byte of text.subarray(0, end)) {
      response.write(Buffer.from([byte]));
      await new Promise(setImmediate);
    }
    response.write(text.subarray(end));
    await threads.until('it is over', () => one.ends.length > 0);
    assert.deepEqual([one.messages, one.ends], [[{ key: 'naïve' }, { key: 2 }], ['compacted']]);
    one.end();
    const two = await watch();
    response.write('{"result":{"key":1}}\n');
    await threads.until('it has said something', () => two.messages.length > 0);
    two.end();
    two.end();
    await threads.until('its connection is closed', () => response.destroyed || response.closed);
    assert.deepEqual([one.ends, two.messages, two.ends], [['compacted'], [{ key: 1 }], [undefined]]);
  }),
);

test(
  'a gateway that is closed sends nothing any more',
  watched(async (t) => {
    const member = await startMember(t, { 'kv/txn': [DONE] });
    const gateway = open(t, [member]);
    gateway.close();
    for (const path of ['kv/txn', 'lease/grant']) {
      await assert.rejects(gateway.call(path, {}, LIMIT), { code: 'ERR_LOCK_STORE', message: /was closed/ });
    }
    assert.deepEqual(member.calls, []);
  }),
);

test(
  'each of three members is asked once, and the two that do not serve are passed over',
  watched(async (t) => {
    const { NO_LEADER } = failuresOf(FORMS[3.6]);
    const members = [];
    for (const answer of [NO_LEADER, NO_LEADER, DONE]) members.push(await startMember(t, { 'kv/txn': [answer] }));
    const gateway = open(t, members);
    for (const counts of [
      [1, 1, 1],
      [1, 1, 2],
    ]) {
      assert.deepEqual(await gateway.call('kv/txn', {}, LIMIT), DONE[1]);
      assert.deepEqual(
        members.map(({ calls }) => calls.length),
        counts,
      );
    }
  }),
);

test(
  'a member that fails several calls at once is passed over once',
  watched(async (t, threads) => {
    const broken = await startSlow(t);
    const member = await startMember(t, { 'kv/txn': [DONE] });
    const gateway = open(t, [broken, member]);
    const calls = [1, 2].map(() => gateway.call('kv/txn', {}, LIMIT));
    await threads.until('both are asked', () => broken.open.length === 2);
    const [status, answer] = failuresOf(FORMS[3.6]).NO_LEADER;
    for (const { response } of broken.open) response.writeHead(status).end(JSON.stringify(answer));
    assert.deepEqual(await Promise.all(calls), [DONE[1], DONE[1]]);
    assert.deepEqual(await gateway.call('kv/txn', {}, LIMIT), DONE[1]);
    assert.deepEqual([broken.open.length, member.calls.length], [2, 3]);
  }),
);

for (const [version, { inStream }] of Object.entries(FORMS)) {
  test(
    `etcd ${version}: a lease that is renewed with a token that is over, which is said with status 200, is renewed with another`,
    watched(async (t) => {
      const member = await startMember(t, {
        'auth/authenticate': [TOKEN],
        'lease/keepalive': [
          [200, { error: inStream(16, 'etcdserver: invalid auth token') }],
          [200, { result: { TTL: '5' } }],
        ],
      });
      assert.deepEqual(await open(t, [member], USER).call('lease/keepalive', {}, LIMIT), { TTL: '5' });
      const renewal = ['lease/keepalive', 'a token'];
      assert.deepEqual(member.calls, [AUTH, renewal, AUTH, renewal]);
    }),
  );
}

test(
  'the name and the password of a user come whole, whatever letters they have',
  watched(async (t) => {
    const bodies = [];
    const url = await serveHttp(t, async (request, response) => {
      bodies.push(JSON.parse(Buffer.concat(await request.toArray()).toString()));
      response.end(JSON.stringify({ token: 'a token' }));
    });
    await open(t, [{ url }], { username: 'Ünal', password: 'пароль' }).call('kv/txn', { key: 'é' }, LIMIT);
    assert.deepEqual(bodies, [{ name: 'Ünal', password: 'пароль' }, { key: 'é' }]);
  }),
);

test(
  'of a stream that is canceled the member is asked again, and if its token is over, with another one',
  watched(async (t) => {
    const canceled = (reason) => [200, `${JSON.stringify({ result: { canceled: true, cancel_reason: reason } })}\n`];
    const stale = 'rpc error: code = Unauthenticated desc = etcdserver: invalid auth token';
    const member = await startMember(t, {
      'auth/authenticate': [TOKEN],
      'kv/txn': [DONE],
      watch: [canceled('compacted'), canceled(stale)],
    });
    const other = await startMember(t, { 'auth/authenticate': [TOKEN], 'kv/txn': [DONE] });
    const gateway = open(t, [member, other], USER);
    const watch = () => new Promise((resolve) => gateway.stream('watch', {}, () => {}, resolve));
    await gateway.call('kv/txn', {}, LIMIT);
    assert.equal(await watch(), 'compacted');
    await gateway.call('kv/txn', {}, LIMIT);
    assert.equal(await watch(), stale);
    await gateway.call('kv/txn', {}, LIMIT);
    const stream = ['watch', 'a token'];
    assert.deepEqual([member.calls, other.calls], [[AUTH, CALL, stream, CALL, stream, AUTH, CALL], []]);
  }),
);

test(
  'where one idle connection is none any more the others are not tried, and a gateway that is closed ends all',
  watched(async (t, threads) => {
    const [sockets, toAnswer] = [new Set(), []];
    let [connections, breaks] = [0, false];
    const server = http.createServer((request, response) => {
      request.resume();
      if (breaks) request.socket.destroy();
      else toAnswer.push(response);
    });
    // It ends none by itself.
    server.keepAliveTimeout = 0;
    server.on('connection', (socket) => {
      connections += 1;
      sockets.add(socket.on('close', () => sockets.delete(socket)));
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const gateway = open(t, [{ url: `http://127.0.0.1:${server.address().port}` }]);
    const callOften = async (count) => {
      const calls = Array.from({ length: count }, () => gateway.call('kv/txn', {}, LIMIT));
      await threads.until('all are asked', () => toAnswer.length === count);
      for (const response of toAnswer.splice(0)) response.end('{}');
      await Promise.all(calls);
    };
    await callOften(3);
    await callOften(3);
    assert.equal(connections, 3);
    breaks = true;
    await assert.rejects(gateway.call('kv/txn', {}, LIMIT), { code: 'ECONNRESET' });
    breaks = false;
    await callOften(1);
    assert.equal(connections, 4);
    await threads.until('the others have gone', () => sockets.size === 1);
    gateway.close();
    await threads.until('the last has gone', () => sockets.size === 0);
  }),
);

test(
  'of two calls whose token is over none is sent without one while the next is asked for',
  watched(async (t, threads) => {
    const [STALE, NAMELESS] = ['STALE', 'NAMELESS'].map((name) => failuresOf(FORMS[3.6])[name]);
    const [tokens, asked] = [[], []];
    const url = await serveHttp(t, async (request, response) => {
      await request.toArray();
      const { authorization } = request.headers;
      if (request.url.endsWith('auth/authenticate')) {
        tokens.push((token) => response.end(JSON.stringify({ token })));
        return;
      }
      asked.push(authorization);
      const [status, answer] = { old: STALE, young: DONE }[authorization] ?? NAMELESS;
      response.writeHead(status).end(JSON.stringify(answer));
    });
    const gateway = open(t, [{ url }], USER);
    const calls = [1, 2].map(() => gateway.call('kv/txn', {}, LIMIT));
    await threads.until('both ask for a token', () => tokens.length === 2);
    for (const give of tokens.splice(0)) give('old');
    await threads.until('both have found it over', () => tokens.length + asked.length === 4);
    for (const give of tokens.splice(0)) give('young');
    assert.deepEqual(await Promise.all(calls), [DONE[1], DONE[1]]);
    assert.deepEqual(asked, ['old', 'old', 'young', 'young']);
  }),
);
