// Beside the types of browsers, and without those of Node.js. Compiled, never run.

import { Mutex, waitAsync } from 'sablock';

const memory = new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true });
const mutex = new Mutex(memory.buffer as unknown as SharedArrayBuffer, 1024);
const { signal } = new AbortController();
mutex.lockAsync({ signal });
waitAsync(new Int32Array(mutex.buffer), 0, 0, 5, { signal: AbortSignal.timeout(5) });
