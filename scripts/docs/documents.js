// Reads the documents of the repository for the checks: code blocks, links, headings, declarations.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const MarkdownIt = require('markdown-it');
const ts = require('typescript');

const root = path.join(__dirname, '..', '..');
const markdown = new MarkdownIt({ html: true });

const read = (file) => fs.readFileSync(path.join(root, file), 'utf8');

const parse = (text) => markdown.parse(text, {});

/** Every Markdown file that git knows, or would know after `git add`. */
const listDocuments = () =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
    cwd: root,
    encoding: 'utf8',
  })
    .split('\n')
    .filter((file) => file !== '' && fs.existsSync(path.join(root, file)));

/** The code blocks: `{ language, code, line, marker }`, where the marker is the HTML comment right before the block. */
const blocksOf = (tokens) =>
  tokens.flatMap((token, index) => {
    if (token.type !== 'fence') return [];
    const before = tokens[index - 1];
    const comment = before?.type === 'html_block' ? /^<!--(.*)-->\s*$/s.exec(before.content) : null;
    return [
      { language: token.info.trim(), code: token.content, line: token.map[0] + 1, marker: comment?.[1].trim() ?? null },
    ];
  });

/** The tokens inside paragraphs, headings and tables, each with the line where that begins. */
const inlinesOf = (tokens) => {
  let line = 1;
  return tokens.flatMap(({ children, map }) => {
    line = map === null ? line : map[0] + 1; // the cells of a row have none
    return (children ?? []).map((child) => ({ child, line }));
  });
};

/** The headings' texts, in order. */
const headingsOf = (tokens) =>
  tokens.flatMap((token, index) => (token.type === 'heading_open' ? [textOf(tokens[index + 1])] : []));

const textOf = (inline) => inline.children.map(({ content }) => content).join('');

/** The code blocks of the `@example` tags of a declaration file, with the lines of the tags. */
const examplesOf = (file) => {
  const source = ts.createSourceFile(file, read(file), ts.ScriptTarget.Latest, true);
  const found = [];
  const visit = (node) => {
    for (const tag of (node.jsDoc ?? []).flatMap(({ tags }) => tags ?? [])) {
      if (tag.tagName.text !== 'example') continue;
      const line = source.getLineAndCharacterOfPosition(tag.pos).line + 1;
      const blocks = blocksOf(parse(ts.getTextOfJSDocComment(tag.comment) ?? ''));
      found.push(...blocks.map((block) => ({ ...block, line })));
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
};

/** Returns what a declaration file exports that exists at run time: from each name to the members of the class, or to null. */
const exportsOf = (file) => {
  const source = ts.createSourceFile(file, read(file), ts.ScriptTarget.Latest, true);
  const values = source.statements.flatMap((node) => {
    if (ts.isVariableStatement(node)) return node.declarationList.declarations;
    return ts.isClassDeclaration(node) || ts.isFunctionDeclaration(node) ? [node] : [];
  });
  return new Map(values.map((node) => [node.name.text, ts.isClassDeclaration(node) ? membersOf(node) : null]));
};

/** Their names as in the source, which for symbols is an expression in brackets. */
const membersOf = ({ members, modifiers, heritageClauses }) => {
  const isStatic = (member) => member.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.StaticKeyword) ?? false;
  const names = (some) => some.filter(({ name }) => name !== undefined).map(({ name }) => name.getText());
  return {
    isAbstract: modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AbstractKeyword) ?? false,
    base: heritageClauses?.[0].types[0].expression.getText(),
    ofClass: names(members.filter(isStatic)),
    ofInstances: names(members.filter((member) => !isStatic(member))),
  };
};

Object.assign(exports, {
  root,
  read,
  parse,
  listDocuments,
  blocksOf,
  inlinesOf,
  headingsOf,
  examplesOf,
  exportsOf,
});
