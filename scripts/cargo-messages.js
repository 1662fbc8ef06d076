// The messages of `cargo --message-format=json`.

/** Returns them; other lines that cargo prints are left out. */
exports.messagesOf = (output) =>
  output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));

/** The test programs that were built, by the names of their files; that of the unit tests is `units`. */
exports.testPrograms = (output) =>
  new Map(
    exports
      .messagesOf(output)
      .filter(({ executable }) => executable)
      .map(({ executable, target }) => [target.kind.includes('test') ? target.name : 'units', executable]),
  );
