// Found by "types" in package.json, as compilers do that do not read "exports". Compiled, never run.

import type { LockGuard, Mutex } from '../../..';

import sablock = require('../../..');

const guard: LockGuard = new sablock.Mutex(new SharedArrayBuffer(4)).acquire();
const mutex: Mutex = guard.mutex;
mutex.unlock();
// @ts-expect-error: there is no such member
mutex.release();
