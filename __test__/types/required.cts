// The face as CommonJS gets it, in both ways of writing. Compiled, never run.

import { Mutex } from 'sablock';
import type { Equal } from './equal.js';

import sablock = require('sablock');

const is = <_ extends true>(): void => {};

is<Equal<typeof sablock.Mutex, typeof Mutex>>();
const mutex: sablock.Mutex = new Mutex(new SharedArrayBuffer(sablock.Mutex.BYTES));
const options: sablock.AsyncLockOptions = { timeout: 5 };
mutex.lockAsync(options);
// @ts-expect-error: there is no default export
sablock.default;
