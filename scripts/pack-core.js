// `require('sablock')` loads the index and eight small files, at each start and in each thread, and to find and read a file takes
// longer than to run it. So the package has the eight as one, `lib/load/core.js`, which is made here and has each of them as it is.
// In the place of each stays a line that passes on its part, for the files that are loaded later.

const fs = require('node:fs');
const path = require('node:path').posix; // names, as `require` has them

const INDEX = 'index.js';
const CORE = 'lib/load/core.js';

/** A call of `require` for another file of the package. */
const REQUIRE = /\brequire\('(\.[^']+)'\)/g;
/** Such a call that is made when its own file is loaded: it is in no function, so its line is not indented. */
const AT_ONCE = /^(?:const [^=]*|\}) = require\('(\.[^']+)'\);$/gm;

const HEAD = `// Made by scripts/pack-core.js of the files that every program loads, by their names below.

const parts = exports;
/** Runs a file, as Node.js does. */
const run = (code) => {
  const module = { exports: {} };
  code(module, module.exports);
  return module.exports;
};
`;

/** Makes it in a folder with the files of the package, unless they are those of a package that has it. */
exports.packCore = (folder) => {
  const inFolder = (file) => path.join(folder, file);
  if (fs.existsSync(inFolder(CORE))) return;
  const texts = new Map();
  const read = (file) => {
    const text = fs.readFileSync(inFolder(file), 'utf8');
    for (const [, name] of text.matchAll(AT_ONCE)) {
      const other = path.join(path.dirname(file), name);
      if (!texts.has(other)) read(other);
    }
    texts.set(file, text); // after those that it needs
  };
  read(INDEX);

  /** The text of a file that has moved to another: with those that stand before it there, and the others where they are. */
  const moved = (file, to, part) =>
    texts.get(file).replace(REQUIRE, (_, name) => {
      const other = path.join(path.dirname(file), name);
      return texts.has(other) ? `${part}['${other}']` : `require('${relative(to, other)}')`;
    });
  const files = [...texts.keys()].filter((file) => file !== INDEX);
  // V8 reads a function in parentheses at once; of another it first finds the end, which takes as long again.
  const codes = files.map(
    (file) => `\nparts['${file}'] = run((function (module, exports) {\n${moved(file, CORE, 'parts')}}));\n`,
  );
  fs.writeFileSync(inFolder(CORE), HEAD + codes.join(''));
  fs.writeFileSync(inFolder(INDEX), moved(INDEX, INDEX, `require('./${CORE}')`));
  for (const file of files) {
    const text = `// This is in one file with all that every program loads.\nmodule.exports = require('${relative(file, CORE)}')['${file}'];\n`;
    fs.writeFileSync(inFolder(file), text);
  }
};

/** Copies the package's JavaScript from the folder `root`, as it is packed. */
exports.copyPacked = (root, folder) => {
  for (const file of ['package.json', INDEX, 'lib']) {
    fs.cpSync(path.join(root, file), path.join(folder, file), { recursive: true });
  }
  exports.packCore(folder);
};

const relative = (from, to) => path.relative(path.dirname(from), to).replace(/^(?!\.)/, './');
