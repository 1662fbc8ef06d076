// The places of a file of JavaScript that can be changed, and the file in which each asks whether its mutant is on.

const path = require('node:path');

const SWITCH = path.join(__dirname, 'switch.js');
const ACTS = ['CallExpression', 'AwaitExpression', 'AssignmentExpression'];
const OTHER_BOUND = { '<': '<=', '<=': '<', '>': '>=', '>=': '>' };

const isOn = (number) => `($seen[${number}] || $reach(${number}), $on === ${number})`;

/** By kind: the text of a place, changed while the mutant with this number is on. */
const CHANGES = {
  delete: (text, number) => `{ if (!${isOn(number)}) ${text}; }`,
  undefined: (text, number) => `(${isOn(number)} ? undefined : (${text}))`,
  true: (text, number) => `(${isOn(number)} || (${text}))`,
  false: (text, number) => `(!${isOn(number)} && (${text}))`,
  flip: (text, number) => `(${text} !== ${isOn(number)})`,
};

/** Returns the places, outer ones first: `[{ start, end, line, kind, text, bound }]`. */
function placesOf({ parse, fullAncestor }, source) {
  const program = parse(source, { ecmaVersion: 'latest', sourceType: 'script', locations: true, allowHashBang: true });
  const atLoad = new Set(program.body);
  const places = [];
  const add = (node, kind, bound) => {
    const { start, end, loc } = node;
    const [text] = source.slice(start, end).split('\n');
    places.push({ start, end, line: loc.start.line, kind, text, bound });
  };
  const addOperands = ({ left, operator, right }) => {
    if (operator === '??') return add(left, 'undefined');
    // Of `a && b && c` the operands are three.
    const operands = [left, right].filter((operand) => operand.operator !== operator);
    for (const operand of operands) add(operand, operator === '&&' ? 'true' : 'false');
  };
  const visitors = {
    ExpressionStatement(node) {
      const { type, callee } = node.expression;
      if (!atLoad.has(node) && type !== 'Literal' && callee?.type !== 'Super') add(node, 'delete');
    },
    IfStatement({ test }) {
      add(test, 'true');
      add(test, 'false');
    },
    ConditionalExpression: (node) => visitors.IfStatement(node),
    WhileStatement: ({ test }) => add(test, 'false'),
    LogicalExpression: addOperands,
    BinaryExpression(node) {
      if (Object.hasOwn(OTHER_BOUND, node.operator)) add(node, OTHER_BOUND[node.operator], node);
    },
    Literal(node, parent) {
      if (typeof node.value === 'boolean' && parent.key !== node) add(node, 'flip');
    },
    ArrowFunctionExpression({ expression, body }) {
      if (expression && ACTS.includes(body.type)) add(body, 'undefined');
    },
  };
  fullAncestor(program, (node, _, ancestors) => visitors[node.type]?.(node, ancestors.at(-2)));
  // A parent is visited after its children: of the same range, the later one is the outer one.
  return places
    .map((place, index) => ({ ...place, index }))
    .sort((a, b) => a.start - b.start || b.end - a.end || b.index - a.index);
}

/** Returns the source with mutants at all places, numbered from `first`, and the places. Its lines stay where they are. */
exports.plant = (parser, source, first) => {
  const places = placesOf(parser, source).map((place, index) => ({ ...place, number: first + index }));
  const between = (start, end, from) => {
    let planted = '';
    let at = start;
    for (let index = from; index < places.length && places[index].start < end; index += 1) {
      const place = places[index];
      if (place.start < at || place.end > end) continue;
      planted += source.slice(at, place.start) + changed(place, index + 1);
      at = place.end;
    }
    return planted + source.slice(at, end);
  };
  const changed = ({ start, end, kind, bound, number }, next) => {
    if (bound === undefined) return CHANGES[kind](between(start, end, next), number);
    const [left, right] = [bound.left, bound.right].map((side) => `(${between(side.start, side.end, next)})`);
    return `(${isOn(number)} ? ${left} ${kind} ${right} : ${left} ${bound.operator} ${right})`;
  };
  const [head] = /^(?:#!.*\n)?(?:\s*(?:\/\/.*\n))*(?:'use strict';)?/.exec(source);
  const ask = `const { on: $on, seen: $seen, reach: $reach } = require(${JSON.stringify(SWITCH)});`;
  return { text: head + ask + between(0, source.length, 0).slice(head.length), places };
};
