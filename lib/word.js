// The bits of the lock word that JS looks at; src/word.rs has the whole table.

/** The holder's agent id; 0: nobody. */
exports.OWNER = 2 ** 26 - 1;
/** A guard owns the hold. */
exports.GUARDED = 2 ** 26;
/** A holder's thread ended inside. */
exports.ABANDONED = 2 ** 27;
