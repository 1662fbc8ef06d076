// Options that nobody knows: which of them are near to one that is known, and which are what other libraries, or other parts of this
// package, have.

const { inspect } = require('node:util');

/** The number of letters to change, add or leave out to make one of the other; no more than `most` are distinguished. */
function distance(one, other, most) {
  if (one === other) return 0;
  if (most === 0) return 1;
  let at = 0;
  while (one[at] === other[at]) at += 1;
  const [a, b] = [one.slice(at), other.slice(at)];
  return (
    1 +
    Math.min(
      distance(a.slice(1), b.slice(1), most - 1),
      distance(a.slice(1), b, most - 1),
      distance(a, b.slice(1), most - 1),
    )
  );
}

/** A unit behind an option: the package counts milliseconds everywhere. */
const UNIT = /_?(?:in_?)?(?:ms|millis|milliseconds|msecs?|s|secs?|seconds)$/;

function isNear(name, known) {
  const [one, other] = [name.toLowerCase(), known.toLowerCase()];
  const most = other.length > 4 ? 2 : 1;
  return one.replace(UNIT, '') === other || distance(one, other, most) <= most;
}

/** The words of other libraries, and what they are called here. */
const WORDS = {
  timeout: [
    'ms',
    'millis',
    'milliseconds',
    'ttl',
    'wait',
    'waitTime',
    'maxWait',
    'deadline',
    'timeLimit',
    'acquireTimeout',
    'lockTimeout',
  ],
  signal: ['abortSignal', 'abort', 'abortController', 'controller', 'cancelToken', 'cancellationToken'],
  ref: ['unref', 'keepAlive'],
  ifAvailable: ['nonBlocking', 'nowait', 'noWait'],
  lease: ['ttl', 'expiry', 'expire', 'leaseTime'],
  permits: ['weight'],
  fair: ['fairness'],
};

/** Options that only some have, and whose. Where they mean nothing, whoever gives them believes that they work. */
const ELSEWHERE = [
  [['fair'], 'new Semaphore()'],
  [['timeout', 'signal', 'ref'], 'the methods that wait'],
  [['maySleep'], 'the constructors of Mutex, RwLock and LockTable'],
  [['onAbandoned'], 'the constructors of Mutex, RwLock, LockTable and LockManager'],
  [['allowMainThread'], 'the constructors'],
  [['scope', 'directory', 'store'], 'new LockManager()'],
  [['mode', 'fence', 'ifAvailable', 'steal'], 'request() and its like of a LockManager'],
  [['wait'], 'close() of a LockManager'],
  [['permits'], 'execute() and executeSync() of a Semaphore'],
  [['name'], 'the constructors of what is on shared memory'],
  [['namespace', 'connectTimeout'], 'postgres() and its like'],
  [['connections', 'heartbeat'], 'postgres() and mysql()'],
  [['lease', 'renew'], 'redis() and etcd()'],
  [['replicas'], 'redis()'],
];

/** Options that no verb that blocks has. */
const OF_PROMISES = ['signal', 'ref'];

/** Advice on an option of this name, where these are known; undefined if it means nothing to anybody. */
function adviceOn(name, known, isBlocking) {
  const meant = known.find((other) => isNear(name, other) || WORDS[other]?.includes(name));
  const isRefused = isBlocking && OF_PROMISES.includes(meant);
  if (meant !== undefined)
    return `Did you mean ${inspect(meant)}?${isRefused ? ' That is for the verbs that return promises.' : ''}`;
  const elsewhere = ELSEWHERE.find(([names]) => names.includes(name));
  return elsewhere && `It is an option of ${elsewhere[1]}.`;
}

exports.adviceOn = adviceOn;
