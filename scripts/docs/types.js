// Checks the types of the blocks of TypeScript in the documents, all of them in one program.

const path = require('node:path');
const ts = require('typescript');
const { root } = require('./documents.js');

const OPTIONS = {
  strict: true,
  noUnusedLocals: true,
  // As a Node.js that strips the types needs it.
  erasableSyntaxOnly: true,
  target: ts.ScriptTarget.ESNext,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  types: ['node'],
  skipLibCheck: true,
  noEmit: true,
};

/** In the root, where `sablock` is this package. None of these files exists. */
const fileOf = (index) => path.join(root, `block-${index}.mts`);

/** Returns the faults of these blocks, `{ file, line, code }`: a list of `{ file, line, problem }`. */
exports.checkTypes = (blocks) => {
  const codes = new Map(blocks.map(({ code }, index) => [fileOf(index), code]));
  const host = ts.createCompilerHost(OPTIONS);
  const { fileExists, getSourceFile, readFile } = host;
  host.fileExists = (file) => codes.has(file) || fileExists(file);
  host.readFile = (file) => codes.get(file) ?? readFile(file);
  host.getSourceFile = (file, ...rest) => {
    const code = codes.get(file);
    return code === undefined ? getSourceFile(file, ...rest) : ts.createSourceFile(file, code, ...rest);
  };
  const program = ts.createProgram([...codes.keys()], OPTIONS, host);
  return blocks.flatMap(({ file, line }, index) => {
    const source = program.getSourceFile(fileOf(index));
    return ts.getPreEmitDiagnostics(program, source).map(({ messageText, start }) => {
      const at = source.getLineAndCharacterOfPosition(start).line + 1;
      return { file, line: line + at, problem: ts.flattenDiagnosticMessageText(messageText, '\n') };
    });
  });
};
