// Tests that may pass although the code of their workers was taken away: by file, the name and the reason.

module.exports = {
  '__test__/futex/conformance-waiting.test.js': [
    [/^Atomics, /, 'the deviations of the built-in functions are shown, and are no failures'],
  ],
  '__test__/stores/lock-worker.test.js': [
    [/^where a bundle has no file of the lock worker, /, 'there is no code: that is what the test is about'],
  ],
};
