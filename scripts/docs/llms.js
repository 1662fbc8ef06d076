// llms.txt and llms-full.txt: the documentation as an index and as one file, for programs that read. Made from README.md,
// the guides and the reference. `npm run docs` writes both. llms.txt is in git, and `npm run docs:check` compares it;
// llms-full.txt is neither in git nor in the package.

const fs = require('node:fs');
const path = require('node:path');

const root = path.join(__dirname, '..', '..');
// The same on every system, however git has written the ends of lines.
const read = (file) => fs.readFileSync(path.join(root, file), 'utf8').replaceAll('\r\n', '\n');
const { name, description } = JSON.parse(read('package.json'));

/** A line of the README's list: `- [Title](docs/guides/file.md): summary`. */
const GUIDE = /^- \[(?<title>.+)\]\((?<file>docs\/guides\/[\w-]+\.md)\): (?<summary>.+)$/gm;

/** The guides in the order of the list in the README: `{ file, title, summary }`, as plain text. */
const listGuides = () =>
  Array.from(read('README.md').matchAll(GUIDE), ({ groups: { file, title, summary } }) => {
    return { file, title: title.replaceAll('`', ''), summary: summary.replaceAll('`', '') };
  });

/** The files of the package's own reference, room by room. */
const listReference = () =>
  fs
    .readdirSync(path.join(root, 'types'))
    .filter((file) => file.endsWith('.d.ts'))
    .sort()
    .map((file) => `types/${file}`);

const toIndex = (guides) => `# ${name}

> ${description}

## Documentation

- [README](../README.md): what it is for, install, example, guarantees, errors, limits
- [types](../types): a file for each room, which index.d.ts exports: every member: whether it blocks, who may call it, units, ranges, errors
- [doctor.d.ts](../types/entries/doctor.d.ts): the lock doctor: options, report

## Guides

${guides.map(({ file, title, summary }) => `- [${title}](${file.replace('docs/', '')}): ${summary}`).join('\n')}
`;

const toPart = (file, text) => `<!-- ${file} -->\n\n${text.trim()}\n`;

/** Without what is for the check, for browsers, or for those who have pictures. */
const toPlain = (text) =>
  text
    .replace(/^<!-- .* -->\n/gm, '')
    .replace(/^<details><summary>(.*)<\/summary>$/gm, '$1:')
    .replace(/^<\/details>\n\n?/gm, '')
    .replace(/^!\[.*\]\((?!https?:).*\)\n\n?/gm, '');

/** Without the imports of what stands in the same file here. */
const toDeclarations = (text) => text.replace(/^import [^;]* from '\.[^;]*;\n/gm, '').trim();

const toWhole = (guides) =>
  [
    `<!-- The documentation of ${name} in one file. Each part begins with its path, which links are relative to. -->\n`,
    ...['README.md', ...guides.map(({ file }) => file)].map((file) => toPart(file, toPlain(read(file)))),
    ...[...listReference(), 'types/entries/doctor.d.ts'].map((file) =>
      toPart(file, `\`\`\`ts\n${toDeclarations(read(file))}\n\`\`\``),
    ),
  ].join('\n');

/** The files' contents, by name. */
const generate = () => {
  const guides = listGuides();
  return { 'docs/llms.txt': toIndex(guides), 'docs/llms-full.txt': toWhole(guides) };
};

Object.assign(exports, { generate, listGuides, listReference });

if (require.main === module) {
  for (const [file, contents] of Object.entries(generate())) fs.writeFileSync(path.join(root, file), contents);
}
