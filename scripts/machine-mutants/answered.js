// Mutants that no test can notice: patterns of the file, and of `kind: text` of the place, and the reason. What is noticed needs no
// answer.

module.exports = [
  [/^src\/engine\/spin\.rs$/, /./, 'Whoever does not spin, or spins on, sleeps later or sooner: a matter of time'],
  [
    /^src\//,
    /^delete: drop\((?:contents|listed, tables|inbox|previous|entry)\);$/,
    'It goes at the end of its scope too',
  ],
  [
    /^src\//,
    /capacity\(\)|is_sparse\(|shrink_to\(/,
    'Room that is given back sooner or later: `npm run torture:memory` sees it grow',
  ],
  [
    /^src\/engine\/deadlock\.rs$/,
    /^(?:false|true): (?:!blockage\.endless \|\| )?!self\.may_be_stuck|^false: !blockage\.endless$/,
    'A look ahead, which spares the search that would find nothing',
  ],
  [
    /^lib\/primitives\//,
    /^(?:false|delete|undefined): .*compareExchange\(/,
    'The fast path in JavaScript: without it the binding does the same',
  ],
];
