// Whether a value is what the declarations say of a type: its fields, all of them and no others, each of its own type.

const fs = require('node:fs');
const path = require('node:path');

const TYPES = path.join(__dirname, '..', '..', 'types');
const TOKEN = /'[^']*'|\w+|\[\]|[{}|;:?()&]/g;

/** Reads types of data, as the tokens of declarations have them: names, strings in quotes, unions, lists and objects. */
class Reader {
  #tokens;
  #at = 0;

  constructor(text) {
    this.#tokens = text.match(TOKEN);
  }

  #take(token) {
    const isNext = this.#tokens[this.#at] === token;
    if (isNext) this.#at += 1;
    return isNext;
  }

  type() {
    this.#take('|');
    const members = [this.#list()];
    while (this.#take('|')) members.push(this.#list());
    return { members };
  }

  #list() {
    let type = this.#single();
    while (this.#take('[]')) type = { of: type };
    return type;
  }

  #single() {
    if (this.#take('{')) return { fields: this.fields() };
    if (this.#take('(')) {
      const type = this.type();
      this.#take(')');
      return type;
    }
    this.#at += 1;
    return { name: this.#tokens[this.#at - 1] };
  }

  /** The fields of an object whose brace was read. */
  fields() {
    const fields = new Map();
    while (this.#at < this.#tokens.length && !this.#take('}')) {
      this.#take('readonly');
      const name = this.#tokens[this.#at++];
      const isOptional = this.#take('?');
      if (!this.#take(':')) throw new Error(`${name} is no field of data`);
      fields.set(name, { isOptional, type: this.type() });
      this.#take(';');
    }
    return fields;
  }
}

const INTERFACE = /^export interface (\w+)(?: extends (\w+))? \{\n(.*?)^\}/gms;
const ALIAS = /^export type (\w+) =([^;]*);/gms;

/** The interfaces and the types with names of some files of declarations, by their names. */
function declarationsOf(files) {
  const all = new Map();
  for (const file of files) {
    const text = fs.readFileSync(path.join(TYPES, file), 'utf8').replace(/\/\*.*?\*\//gs, '');
    for (const [, name, base, body] of text.matchAll(INTERFACE)) all.set(name, { base, body });
    for (const [, name, body] of text.matchAll(ALIAS)) all.set(name, { alias: body });
  }
  return all;
}

/** Returns `misfits(value, type)`: each as a text with its path; none if all is as it is declared in these files. */
exports.declaredIn = (...files) => {
  const declarations = declarationsOf(files);
  const fieldsOf = (name) => {
    const { base, body } = declarations.get(name);
    return new Map([...(base === undefined ? [] : fieldsOf(base)), ...new Reader(body).fields()]);
  };

  function ofFields(value, fields, at) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${at}: no object`];
    const unknown = Object.keys(value).filter((key) => !fields.has(key));
    const missing = [...fields].filter(([key, { isOptional }]) => !isOptional && !Object.hasOwn(value, key));
    return [
      ...unknown.map((key) => `${at}.${key}: not declared`),
      ...missing.map(([key]) => `${at}.${key}: not there`),
      ...Object.keys(value).flatMap((key) =>
        fields.has(key) ? misfits(value[key], fields.get(key).type, `${at}.${key}`) : [],
      ),
    ];
  }

  function ofName(value, name, at) {
    if (declarations.get(name)?.alias !== undefined) {
      return misfits(value, new Reader(declarations.get(name).alias).type(), at);
    }
    if (declarations.has(name)) return ofFields(value, fieldsOf(name), at);
    const isRight =
      name === 'null' || name === 'undefined'
        ? String(value) === name
        : name.startsWith("'")
          ? `'${value}'` === name
          : typeof value === name;
    return isRight ? [] : [`${at}: ${JSON.stringify(value)} is no ${name}`];
  }

  function misfits(value, type, at) {
    if (type.members !== undefined) {
      const found = type.members.map((member) => misfits(value, member, at));
      // The member of a union that fits best counts.
      return found.reduce((best, each) => (each.length < best.length ? each : best));
    }
    if (type.fields !== undefined) return ofFields(value, type.fields, at);
    if (type.of === undefined) return ofName(value, type.name, at);
    if (!Array.isArray(value)) return [`${at}: no list`];
    return value.flatMap((each, index) => misfits(each, type.of, `${at}[${index}]`));
  }
  return (value, type) => misfits(value, new Reader(type).type(), type);
};
