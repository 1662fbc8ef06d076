// A program and this package in one file, as esbuild writes it: each file's code in a function of its own, below a comment with
// its path; a class that is named inside itself has another name there.

const fs = require('node:fs');
const path = require('node:path');

const root = path.join(__dirname, '../..');

const rename = (code) =>
  code.replace(
    /^class (\w+)( \{\}$|[\s\S]*?^\})/gm,
    (_, name, body) =>
      `var ${name} = class _${name}${body.replace(new RegExp(`\\b${name}\\b(?!['"])`, 'g'), `_${name}`)};`,
  );

/** The text of the bundle of a program that requires `sablock`, whose own file has this path. */
exports.bundle = (program, source = 'app.js') => {
  const modules = new Map();
  const add = (file) => {
    if (modules.has(file)) return file;
    modules.set(file, '');
    const code = fs.readFileSync(file, 'utf8').replace(/require\('(\.[^']+)'\)/g, (_, name) => {
      return `include('${add(path.join(path.dirname(file), name))}')`;
    });
    modules.set(file, rename(code));
    return file;
  };
  const entry = add(path.join(root, 'index.js'));
  const parts = Array.from(modules, ([file, code]) => {
    const shown = path.relative(root, file).replaceAll(path.sep, '/');
    return `// node_modules/sablock/${shown}\nfiles['${file}'] = (exports, module) => {\n${code}\n};\n`;
  });
  return `const files = {};
const cache = {};
const include = (name) => {
  if (cache[name] !== undefined) return cache[name].exports;
  cache[name] = { exports: {} };
  files[name](cache[name].exports, cache[name]);
  return cache[name].exports;
};
${parts.join('\n')}
// ${source}
${program.replaceAll("require('sablock')", `include('${entry}')`)}`;
};
