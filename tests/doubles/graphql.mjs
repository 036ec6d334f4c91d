// graphql.mjs: as much of the query language as Dagger's SDKs and our backend send: one operation,
// fields with literal arguments, aliases, inline fragments. No variables, no directives.
//
// parse(text) -> [{ name, alias, args, fields, on }]; `on` is the type of an inline fragment.
import { Fail } from './serve.mjs';

const TOKEN = /[\s,]+|#[^\n]*|(\.\.\.|[{}()[\]:!])|("(?:[^"\\\n]|\\.)*")|(-?\d+(?:\.\d+)?)|([A-Za-z_]\w*)/y;

function tokens(text) {
  const found = [];
  for (TOKEN.lastIndex = 0; TOKEN.lastIndex < text.length; ) {
    const at = TOKEN.lastIndex;
    const m = TOKEN.exec(text);
    if (!m) throw new Fail(422, `Unexpected character at ${at}`);
    if (m[1]) found.push({ punct: m[1] });
    else if (m[2]) found.push({ value: JSON.parse(m[2]) });
    else if (m[3]) found.push({ value: Number(m[3]) });
    else if (m[4]) found.push({ word: m[4] });
  }
  return found;
}

class Reader {
  constructor(text) {
    this.all = tokens(text);
    this.at = 0;
  }
  is(punct) {
    return this.all[this.at]?.punct === punct;
  }
  take(punct) {
    if (!this.is(punct)) throw new Fail(422, `Expected ${punct}`);
    this.at++;
  }
  word() {
    const t = this.all[this.at++];
    if (!t?.word) throw new Fail(422, 'Expected Name');
    return t.word;
  }
  value() {
    if (this.is('[')) {
      const list = [];
      for (this.take('['); !this.is(']'); ) list.push(this.value());
      this.take(']');
      return list;
    }
    const t = this.all[this.at++];
    if (t?.value !== undefined) return t.value;
    if (t?.word) return { true: true, false: false, null: null }[t.word] ?? t.word; // else an enum
    throw new Fail(422, 'Expected a value');
  }
  args() {
    const found = {};
    if (!this.is('(')) return found;
    for (this.take('('); !this.is(')'); ) {
      const name = this.word();
      this.take(':');
      found[name] = this.value();
    }
    this.take(')');
    return found;
  }
  fields() {
    const found = [];
    for (this.take('{'); !this.is('}'); ) found.push(this.is('...') ? this.fragment() : this.field());
    this.take('}');
    return found;
  }
  fragment() {
    this.take('...');
    if (this.word() !== 'on') throw new Fail(422, 'Expected on');
    return { on: this.word(), fields: this.fields() };
  }
  field() {
    let name = this.word(), alias = name;
    if (this.is(':')) {
      this.take(':');
      name = this.word();
    }
    return { name, alias, args: this.args(), fields: this.is('{') ? this.fields() : undefined };
  }
}

export function parse(text) {
  const r = new Reader(text);
  if (r.all[0]?.word === 'query') r.at++;
  if (r.all[r.at]?.word) r.at++;
  return r.fields();
}
