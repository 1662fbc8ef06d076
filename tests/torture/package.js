// The package under torture: this one, or the copy that SABLOCK_PACKAGE names (a packed install, a mutant).

module.exports = require(process.env.SABLOCK_PACKAGE ?? '../..');
