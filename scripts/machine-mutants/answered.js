// Mutants that no test can notice: the file, the kind and the text of the place (a pattern over `kind: text`), and the reason.

module.exports = [];
