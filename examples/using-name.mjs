// A lock by name with `using`: several tasks write the same file, one after the other, and the end of the block unlocks the name.
// Node.js 24 and later read this file as it is; for earlier versions `run.js` compiles it.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { locks } from 'sablock';

const folder = await mkdtemp(join(tmpdir(), 'sablock-example-'));
const file = join(folder, 'visits.json');

async function addVisit(visitor) {
  using lock = await locks.acquireAsync(file, { timeout: 10_000 });
  const visits = JSON.parse(await readFile(file, 'utf8'));
  await writeFile(file, JSON.stringify([...visits, visitor]));
  return lock.name;
}

await writeFile(file, '[]');
const names = await Promise.all(Array.from({ length: 20 }, (_, visitor) => addVisit(visitor)));
const visits = JSON.parse(await readFile(file, 'utf8'));
const { held, pending } = await locks.query();
await rm(folder, { recursive: true });

console.log(
  `${visits.length} visits of 20 are in the file; ${held.length + pending.length} locks are held or waited for`,
);
const isInOrder = visits.length === 20 && visits.every((visitor, i) => visitor === i);
if (!isInOrder || names.some((name) => name !== file) || held.length + pending.length > 0) process.exitCode = 1;
