const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

/** An empty folder, which goes when the test ends. */
exports.createFolder = (t) => {
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-test-')));
  // Windows removes no file that is open, and a wait that timed out is settled before its thread has closed the file.
  t.after(() => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  return folder;
};
