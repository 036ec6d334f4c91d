// behaviour.test.mjs: runs behaviour.json, which all language packages share, on local and jail.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { open, CaissonError } from 'caisson';
import { workspace } from './support.mjs';

const { cases } = JSON.parse(fs.readFileSync(new URL('./behaviour.json', import.meta.url)));
const camel = (name) => name.replace(/_([a-z])/g, (_, c) => c.toUpperCase());
const renamed = (object) => Object.fromEntries(Object.entries(object).map(([k, v]) => [camel(k), v]));

/** The verbs of the cases, as methods. `now` has the sandbox and its last process. */
const VERBS = {
  exec: (now, { argv, ...o }) => now.sandbox.exec(argv, o),
  sh: (now, { command, ...o }) => now.sandbox.sh(command, o),
  start_sh: async (now, { command, ...o }) => { now.process = await now.sandbox.startSh(command, o); },
  wait_log: (now, { text, ...o }) => now.sandbox.waitLog(text, o),
  process_write: (now, { data }) => now.process.write(data),
  process_wait: (now, o) => now.process.wait(o),
  process_logs: (now, o) => now.process.logs(o),
  read: (now, { path: p, ...o }) => now.sandbox.read(p, o),
  read_bytes: async (now, { path: p, ...o }) => ({ data: await now.sandbox.readBytes(p, o) }),
  write: (now, { path: p, content, ...o }) => now.sandbox.write(p, content, o),
  write_many: (now, { files }) => now.sandbox.writeMany(files),
  edit: (now, { path: p, edits }) => now.sandbox.edit(p, edits.map(renamed)),
  delete: (now, { path: p, ...o }) => now.sandbox.delete(p, o),
  mkdir: (now, { path: p }) => now.sandbox.mkdir(p),
  rename: (now, { from, to }) => now.sandbox.rename(from, to),
  stat: (now, { path: p }) => now.sandbox.stat(p),
  list: (now, { path: p }) => now.sandbox.list(p),
  glob: (now, { pattern, path: p, ...o }) => now.sandbox.glob(pattern, p, o),
  grep: (now, { pattern, ...o }) => now.sandbox.grep(pattern, o),
  set_workdir: (now, { path: p }) => now.sandbox.setWorkdir(p),
  would_allow: (now, { op, target }) => now.sandbox.wouldAllow(op, target),
  diff: (now) => now.sandbox.diff(),
  commit: (now) => now.sandbox.commit(),
  snapshot_as: (now, { name }) => now.sandbox.snapshotAs(name),
  rollback: (now, { snapshot }) => now.sandbox.rollback(snapshot),
  undo: (now) => now.sandbox.undo(),
  discard: (now) => now.sandbox.discard(),
  destroy: (now) => now.sandbox.destroy(),
};

function compare(got, want, where) {
  if (Array.isArray(want)) {
    assert.equal(got?.length, want.length, `${where}: number of items in ${inspect(got)}`);
    want.forEach((w, i) => compare(got[i], w, `${where}[${i}]`));
  } else if (want !== null && typeof want === 'object') {
    for (const [key, value] of Object.entries(want)) {
      const like = key.endsWith('_like');
      const name = camel(like ? key.slice(0, -5) : key);
      assert.ok(name in got, `${where}: no ${name}`);
      if (like) assert.ok(String(got[name]).includes(value), `${where}.${name}: ${got[name]}`);
      else compare(got[name], value, `${where}.${name}`);
    }
  } else {
    assert.equal(Buffer.isBuffer(got) ? got.toString() : got, want, where);
  }
}

async function step(now, { verb, want, error, ...args }) {
  const promise = Promise.resolve().then(() => VERBS[verb](now, renamed(args)));
  if (error) {
    await assert.rejects(promise, (e) => e instanceof CaissonError && e.code === error, `${verb}: ${error}`);
    return;
  }
  const result = await promise;
  if (want) compare(result, want, verb);
}

async function runCase(c, backend, t) {
  const dir = workspace(t);
  for (const [name, text] of Object.entries(c.files ?? {})) {
    fs.mkdirSync(path.dirname(path.join(dir, name)), { recursive: true });
    fs.writeFileSync(path.join(dir, name), text);
  }
  const opened = open({ backend, workspace: dir, ...c.options });
  if (c.open_error) {
    await assert.rejects(opened, (e) => e instanceof CaissonError && e.code === c.open_error);
    return;
  }
  const now = { sandbox: await opened };
  try {
    for (const s of c.steps) await step(now, s);
  } finally {
    await now.sandbox.close();
  }
}

for (const c of cases) {
  for (const backend of c.backends ?? ['local', 'jail']) {
    test(`${backend}: ${c.name}`, (t) => runCase(c, backend, t));
  }
}
