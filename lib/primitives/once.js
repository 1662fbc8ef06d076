const { binding, thread } = require('../engine/thread.js');
const { describeHolder, tellAbandoned } = require('../engine/diagnosis.js');
const { checkFunction, isThenable } = require('../arguments.js');
const { corrupt } = require('../engine/corrupt.js');
const { TimeoutError, invalidThis, thenableRun } = require('../errors.js');
const { SharedPrimitive, awaitFor, blockFor, defineSize, mayBlock, wordsOf } = require('./base.js');

const { ABANDONED, Ask, Change, DONE, RELEASED, WAITING } = binding;
const { load } = Atomics;

/** To run: `true`. It is refused, with `false`, once somebody is done. */
const TURN = {
  ask: Ask.Once,
  count: 1,
  of: 0,
  isCounted: false,
  isGuarded: true,
  isExclusive: false,
  timedOut: (word, timeout, verb) => new TimeoutError(word, timeout, verb, describeHolder(word), 'Wait longer.'),
  take(once, word, status) {
    if (status === binding.GRANTED_ABANDONED) tellAbandoned(once, word, thread.record[binding.Field.EndedThread]);
    return true;
  },
  refused: () => false,
};

/** The promise of all calls that come when it is done, which are most. */
const NOT_RUN = Promise.resolve(false);

/** Something that is done once among all threads. */
class Once extends SharedPrimitive {
  static {
    defineSize('Once', Once, 4);
  }

  #word;
  #mayBlock;

  constructor(buffer, byteOffset, options) {
    super('Once', Ask.Once, 4, buffer, byteOffset, options);
    this.#word = wordsOf(this);
    // For messages: whoever holds it runs it.
    this.#word.verb = 'run';
    this.#mayBlock = mayBlock(this);
  }

  get isDone() {
    return (load(this.#word, 0) & ~WAITING) === DONE;
  }

  run(fn, options) {
    try {
      if (options === undefined && typeof fn === 'function' && load(this.#word, 0) === DONE) return NOT_RUN;
      return this.#run(fn, options);
    } catch (error) {
      if (#word in Object(this)) throw error;
      return Promise.reject(invalidThis(this, 'run'));
    }
  }

  runSync(fn, options) {
    const word = this.#word;
    checkFunction(word, 'fn', fn);
    if (options === undefined && this.#mayBlock && load(word, 0) === DONE) return false;
    if (!blockFor(this, TURN, options, 'runSync', 'run()')) return false;
    let isDone = false;
    let error;
    try {
      if (isThenable(fn({ abandoned: isAbandoned(word) }))) throw thenableRun(word);
      isDone = true;
    } catch (thrown) {
      error = thrown;
    }
    // At the end of the stack no function of JS may be able to begin. Those of the binding always are.
    try {
      thread.drainSoon(word);
    } catch {
      binding.wake();
    }
    const status = isDone ? binding.change(word, Ask.Once, Change.Finish, 0, 0) : binding.release(word, Ask.Once, 1, 0);
    // The error of `fn` says more than why the next one could not be let in.
    if (!isDone) throw error;
    if (status !== RELEASED) throw corrupt(word);
    return true;
  }

  async #run(fn, options) {
    const word = this.#word;
    checkFunction(word, 'fn', fn);
    if (!(await awaitFor(this, TURN, options, 'run'))) return false;
    try {
      const result = fn({ abandoned: isAbandoned(word) });
      if (isThenable(result)) await result;
    } catch (error) {
      thread.drainSoon(word);
      binding.release(word, Ask.Once, 1, 0);
      throw error;
    }
    thread.drainSoon(word);
    if (binding.change(word, Ask.Once, Change.Finish, 0, 0) !== RELEASED) throw corrupt(word);
    return true;
  }
}

/** Whether the thread of one before ended inside: for whoever runs. */
const isAbandoned = (word) => (load(word, 0) & ABANDONED) !== 0;

exports.Once = Once;
