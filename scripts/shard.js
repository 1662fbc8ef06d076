// `--shard K/N` of a script, counted from 0 as by cargo-mutants: it takes each N-th of its items only, beginning with the K-th.

/** For `parseArgs()`. */
exports.SHARD = { type: 'string', default: '0/1' };

exports.ofShard = (items, shard) => {
  const [, k, n] = /^(\d+)\/([1-9]\d*)$/.exec(shard)?.map(Number) ?? [];
  if (k === undefined || k >= n) throw new Error(`--shard is K/N, where K is less than N: ${shard}`);
  return items.filter((_, index) => index % n === k);
};
