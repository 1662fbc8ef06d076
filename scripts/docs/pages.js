// Writes the pages of the documentation to docs/api: the reference of each entry, README.md, and the guides.

const path = require('node:path');
const { headingsOf, parse, read, root } = require('./documents.js');
const { listGuides } = require('./llms.js');

/** The entries of the package, and their readable names. */
const MODULES = new Map([
  ['index.d.ts', 'Reference'],
  ['types/entries/doctor.d.ts', 'Lock doctor'],
  ['types/entries/postgres.d.ts', 'PostgreSQL'],
  ['types/entries/mysql.d.ts', 'MySQL, MariaDB'],
  ['types/entries/redis.d.ts', 'Redis'],
  ['types/entries/etcd.d.ts', 'etcd'],
]);

const main = async () => {
  const { Application, Converter, OptionDefaults, ReflectionKind } = await import('typedoc');
  const inRoot = (file) => path.join(root, file);
  const guides = listGuides().map(({ file }) => file);

  const app = await Application.bootstrap({
    name: 'sablock',
    entryPoints: [...MODULES.keys()].map(inRoot),
    tsconfig: path.join(__dirname, 'tsconfig.json'),
    readme: inRoot('README.md'),
    projectDocuments: guides.map(inRoot),
    out: inRoot('docs/api'),
    sort: ['documents-first', 'kind', 'alphabetical-ignoring-documents'],
    navigation: { includeCategories: false, includeGroups: false },
    customCss: path.join(__dirname, 'pages.css'),
    disableSources: true,
    highlightLanguages: [...OptionDefaults.highlightLanguages, 'lua', 'sql'],
    hideGenerator: true,
    includeHierarchySummary: false,
    excludePrivate: true,
    excludeExternals: true,
    treatWarningsAsErrors: true,
    validation: { notExported: true, invalidLink: true, invalidPath: true, rewrittenLink: true, notDocumented: true },
  });

  // Readable names, in place of those of the files.
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.getReflectionsByKind(ReflectionKind.Module)) {
      const file = `${path.basename(module.name)}.d.ts`;
      module.name = [...MODULES].find(([entry]) => path.basename(entry) === file)[1];
    }
  });
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_, document) => {
    const guide = guides.find((file) => path.basename(file, '.md') === document.name);
    [document.name] = headingsOf(parse(read(guide)));
  });

  const project = await app.convert();
  if (project === undefined) return false;
  app.validate(project);
  await app.generateOutputs(project);
  return !app.logger.hasErrors() && !app.logger.hasWarnings();
};

main().then((isClean) => {
  if (!isClean) process.exitCode = 1;
});
