// llms.txt and llms-full.txt: the documentation as an index and as one file, for programs that read. Made from README.md,
// the guides and index.d.ts; `npm run docs` writes them, `npm run docs:check` compares.

const fs = require('node:fs');
const path = require('node:path');
const { listGuides, read, root } = require('./documents.js');

const { name, description } = JSON.parse(read('package.json'));

const toIndex = (guides) => `# ${name}

> ${description}

[llms-full.txt](llms-full.txt) has all of this in one file.

## Documentation

- [README](README.md): what it is for, install, example, guarantees, errors, limits
- [index.d.ts](index.d.ts): every member: whether it blocks, who may call it, units, ranges, errors

## Guides

${guides.map(({ file, title, summary }) => `- [${title}](${file}): ${summary}`).join('\n')}
`;

const toPart = (file, text) => `<!-- ${file} -->\n\n${text.trim()}\n`;

const toWhole = (guides) =>
  [
    `<!-- The documentation of ${name} in one file. Each part begins with its path, which links are relative to. -->\n`,
    ...['README.md', ...guides.map(({ file }) => file)].map((file) => toPart(file, read(file))),
    toPart('index.d.ts', `\`\`\`ts\n${read('index.d.ts').trim()}\n\`\`\``),
  ].join('\n');

/** The files' contents, by name. */
exports.generate = () => {
  const guides = listGuides();
  return { 'llms.txt': toIndex(guides), 'llms-full.txt': toWhole(guides) };
};

if (require.main === module) {
  for (const [file, contents] of Object.entries(exports.generate())) fs.writeFileSync(path.join(root, file), contents);
}
