// A package with mutants and its tests, as they were built and recorded, and what came of each mutant: for a run that goes on later.

const fs = require('node:fs');
const path = require('node:path');
const { folder } = require('./build.js');

const built = path.join(folder, 'built.json');
const tried = path.join(folder, 'tried.jsonl');

exports.keep = ({ mutants, tests }) => {
  const plain = tests.map((test) => ({ ...test, reached: [...test.reached] }));
  fs.writeFileSync(built, JSON.stringify({ mutants, tests: plain }));
  fs.writeFileSync(tried, '');
};

exports.kept = () => {
  if (!fs.existsSync(built)) throw new Error('There is no run to go on with');
  const { mutants, tests } = JSON.parse(fs.readFileSync(built, 'utf8'));
  const results = fs
    .readFileSync(tried, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  return {
    mutants,
    tests: tests.map((test) => ({ ...test, reached: new Set(test.reached) })),
    tried: new Map(results.map((result) => [result.number, result])),
  };
};

exports.note = (number, result) => fs.appendFileSync(tried, `${JSON.stringify({ number, ...result })}\n`);
