// dagger.mjs: a server that answers as a Dagger engine's session does, as far as its own SDK and our
// backend ask, for offline tests.
//
//   node dagger.mjs [--root DIR] [--token TOKEN] [--old yes] [--session yes]
//
// A container is a value: files, variables, a working directory, what the last command said. A
// command runs in a jail of its own that ends with it; /work is a directory of the host, and /tmp
// is carried from one command to the next. There is one working copy a base container (with --root
// that directory, whichever the base is, under its own name too), and a copy is kept of every state that has been left, so
// that a branch finds what it began with. The same chain is evaluated once. --old: an engine
// without node(id:). --session: says where it listens as `dagger session` does. GET /_double/counts says how many containers and commands there were.
import { spawn } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { endAll, environment, program, scratch } from './box.mjs';
import { parse } from './graphql.mjs';
import { Fail, body, json, options, serve } from './serve.mjs';

const opts = options();
const KEPT = 24; // states of a shared directory that can be gone back to
const counts = { queries: 0, from: 0, exec: 0 };
const objects = new Map(); // by id
const env = environment();

class Refused extends Error { // a failure of the engine's, with what it tells of it
  constructor(message, extensions) {
    super(message);
    this.extensions = extensions;
  }
}

// ---- files ----

const empty = (dir) => fs.readdirSync(dir).length === 0;

function wipe(dir) {
  for (const name of fs.readdirSync(dir)) fs.rmSync(path.join(dir, name), { recursive: true, force: true });
}

function run(cmd, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(cmd, args, { stdio: ['ignore', 'ignore', 'inherit'] });
    child.on('error', reject);
    child.on('close', (code) => (code === 0 ? resolve() : reject(new Error(`${cmd}: ${code}`))));
  });
}

async function copy(from, to) {
  if (!empty(from)) await run('cp', ['-a', '--reflink=auto', `${from}/.`, to]);
}

// Says whether anything below the directories is different.
function fingerprint(dirs) {
  const seen = [];
  const look = (file) => {
    const st = fs.lstatSync(file, { bigint: true });
    seen.push(`${file} ${st.mode} ${st.size} ${st.mtimeNs} ${st.nlink}`);
    if (st.isDirectory()) for (const name of fs.readdirSync(file, 'latin1')) look(Buffer.concat([Buffer.from(file), Buffer.from('/'), Buffer.from(name, 'latin1')]));
  };
  for (const dir of dirs) for (const name of fs.readdirSync(dir, 'latin1')) look(Buffer.concat([Buffer.from(`${dir}/`), Buffer.from(name, 'latin1')]));
  return crypto.createHash('sha256').update(seen.join('\n')).digest('hex');
}

class Tree {
  static shared;
  static of() {
    if (!opts.root) return new Tree(fs.mkdtempSync(`${scratch}/w`));
    return (Tree.shared ??= new Tree(opts.root));
  }
  constructor(dir) {
    fs.chmodSync(dir, 0o755);
    this.parts = { '/work': dir, '/tmp': fs.mkdtempSync(`${scratch}/t`), '/root': fs.mkdtempSync(`${scratch}/h`) };
    this.live = new Set(); // Files that are what the working copy holds
    this.turn = Promise.resolve();
    this.kept = [];
  }
  one(work) {
    const mine = this.turn.then(work);
    this.turn = mine.catch(() => {});
    return mine;
  }
  print() {
    return fingerprint(Object.values(this.parts));
  }
  async keep(files) {
    if (files.snap) this.forget(files);
    const snap = fs.mkdtempSync(`${scratch}/k`);
    for (const [i, dir] of Object.values(this.parts).entries()) {
      fs.mkdirSync(`${snap}/${i}`);
      await copy(dir, `${snap}/${i}`);
    }
    files.snap = snap;
    files.print = this.print();
    this.kept.push(files);
    const old = opts.root && this.kept.length > KEPT ? this.kept[0] : undefined;
    if (old) {
      this.forget(old);
      old.forgotten = !this.live.has(old);
    }
  }
  forget(files) {
    this.kept.splice(this.kept.indexOf(files), 1);
    fs.rmSync(files.snap, { recursive: true, force: true });
    files.snap = undefined;
  }
  // Makes the working copy what `files` are, whatever it was.
  async enter(files) {
    if (files.forgotten) throw new Refused('the result is not held any more');
    if (this.live.has(files)) {
      if (!files.snap || files.print !== this.print()) await this.keep(files);
      return;
    }
    for (const other of this.live) await this.keep(other);
    this.live.clear();
    for (const [i, dir] of Object.values(this.parts).entries()) {
      wipe(dir);
      await copy(`${files.snap}/${i}`, dir);
    }
  }
  // Runs `work` on the working copy; what is there after it is the state `next`, or, when nothing
  // is different, what was there before.
  step(state, next, work) {
    return this.one(async () => {
      await this.enter(state.files);
      const { files } = state;
      this.live.delete(files);
      await work(next);
      if (files.print === this.print()) next.files = files;
      this.live.add(next.files);
      return next;
    });
  }
  // The host's name of a file of `state`.
  host(state, file, real = false) {
    let full = path.posix.resolve(state.workdir, file);
    if (opts.root && full.startsWith(`${opts.root}/`)) full = `/work${full.slice(opts.root.length)}`;
    for (const [i, [inside, dir]] of Object.entries(this.parts).entries()) {
      const below = full === inside ? '' : full.startsWith(`${inside}/`) ? full.slice(inside.length + 1) : undefined;
      if (below !== undefined) return path.join(state.files.snap && !real && !this.live.has(state.files) ? `${state.files.snap}/${i}` : dir, below);
    }
    throw new Refused(`lstat ${full}: no such file or directory`);
  }
}

const cleanError = (e) => (e.code === 'ENOENT' ? new Refused(`${e.path}: no such file or directory`) : e);

// ---- commands ----

// Carries /tmp in and out again, but for what is mounted there.
const runner = `t=$1 w=$2; shift 2
any() { for f in "$1"/* "$1"/.[!.]*; do if [ -e "$f" ] || [ -L "$f" ]; then return 0; fi; done; return 1; }
had=:; for f in /tmp/* /tmp/.[!.]*; do had=$had$f:; done
any "$t" && cp -a "$t/." /tmp/
cd "$w" || exit 125
"$@"
x=$?
any "$t" && find "$t" -mindepth 1 -delete
for f in /tmp/* /tmp/.[!.]*; do
  case $had in *":$f:"*) continue ;; esac
  if [ -e "$f" ] || [ -L "$f" ]; then cp -a "$f" "$t/"; fi
done
exit $x`;

function jail(state, args, { stdin, gone }) {
  const parts = state.tree.parts;
  const line = ['run', '--backend', 'jail', '--workspace', `${parts['/work']}:/work`, '--home', parts['/root'], '--write', parts['/tmp'], '--timeout', 'none'];
  // A directory that is shared with the test has its own name inside too, and is entered by that.
  const workdir = opts.root ? state.workdir.replace(/^\/work(?=\/|$)/, () => parts['/work']) : state.workdir;
  if (opts.root) line.push('--write', parts['/work']);
  if (stdin !== undefined) line.push('--stdin');
  for (const [k, v] of Object.entries(state.env)) line.push('--env', `${k}=${v}`);
  return new Promise((resolve, reject) => {
    let child;
    try {
      child = spawn(program, [...line, '--', 'sh', '-c', runner, 'sh', parts['/tmp'], workdir, ...args], { env, cwd: scratch, stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
    } catch (e) {
      return reject(new Refused(e.code === 'E2BIG' ? 'exec: argument list too long' : e.message));
    }
    const out = [], err = [];
    const stop = () => { child.kill('SIGTERM'); setTimeout(() => child.kill('SIGKILL'), 3000).unref(); };
    gone.addEventListener('abort', stop);
    child.stdout.on('data', (d) => out.push(d));
    child.stderr.on('data', (d) => err.push(d));
    child.stdin?.on('error', () => {}).end(stdin);
    child.on('error', (e) => reject(new Refused(e.code === 'E2BIG' ? 'exec: argument list too long' : e.message)));
    child.on('close', (code) => {
      gone.removeEventListener('abort', stop);
      if (gone.aborted) return reject(new Refused('context canceled'));
      resolve({ exitCode: code ?? 137, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() });
    });
  });
}

// ANY takes everything but what looks like the end by a signal.
function accepted(code, expect) {
  if (expect === 'ANY') return code < 128 || code > 191;
  return expect === 'FAILURE' ? code > 0 && (code < 128 || code > 191) : code === 0;
}

async function withExec(state, a, gone) {
  if (!a.args?.length) throw new Refused('args required');
  counts.exec++;
  const next = state.child();
  return state.tree.step(state, next, async () => {
    const last = await jail(state, a.args, { stdin: a.stdin, gone });
    if (!accepted(last.exitCode, a.expect ?? 'SUCCESS'))
      throw new Refused(`process "${a.args.join(' ')}" did not complete successfully: exit code: ${last.exitCode}`, { _type: 'EXEC_ERROR', cmd: a.args, exitCode: last.exitCode, stdout: last.stdout.slice(-102400).trim(), stderr: last.stderr.slice(-102400).trim() });
    next.last = last;
    for (const name of ['stdout', 'stderr']) if (a[`redirect${name[0].toUpperCase()}${name.slice(1)}`]) fs.writeFileSync(state.tree.host(next, a[`redirect${name[0].toUpperCase()}${name.slice(1)}`], true), last[name]);
  });
}

// ---- what there is ----

class Thing {
  constructor(type) {
    this.type = type;
    this.id = `${type}@${crypto.randomBytes(12).toString('base64')}`;
    this.memo = new Map();
    objects.set(this.id, this);
  }
}

class State extends Thing {
  constructor(tree) {
    super('Container');
    Object.assign(this, { tree, env: {}, workdir: '/', last: undefined, files: {} }); // files: { snap, forgotten }
  }
  child() {
    const c = new State(this.tree);
    Object.assign(c, { env: { ...this.env }, workdir: this.workdir, last: this.last });
    return c;
  }
  // One that differs in words only: its files are those of this.
  also(change) {
    const c = this.child();
    return Object.assign(c, { files: this.files }, change(c));
  }
  ran(what) {
    if (!this.last) throw new Refused('no command has been set');
    return this.last[what];
  }
}

class Place extends Thing { // a file or directory of a state, or of the host
  constructor(type, at, name) {
    super(type);
    this.at = at; // () => the host's name
    this.name = name;
  }
}

function place(state, type, file) {
  const p = new Place(type, () => state.tree.host(state, file), path.basename(file));
  const st = fs.statSync(p.at());
  if ((type === 'Directory') !== st.isDirectory()) throw new Refused(`${file}: not a ${type.toLowerCase()}`);
  return p;
}

function change(state, work) {
  const next = state.child();
  return state.tree.step(state, next, async () => work((file) => state.tree.host(next, file, true)));
}

function thing(id, type) {
  const found = objects.get(id);
  if (!found || (type && found.type !== type)) throw new Refused(`failed to load ${type ?? 'object'}: result not found`);
  return found;
}

function list(dir) {
  return fs.readdirSync(dir, { withFileTypes: true }).map((e) => (e.isDirectory() ? `${e.name}/` : e.name)).sort();
}

const container = {
  id: ['ID', (s) => s.id],
  sync: ['ID', (s) => s.id],
  user: ['String', () => ''],
  workdir: ['String', (s) => s.workdir],
  exitCode: ['Int', (s) => s.ran('exitCode')],
  stdout: ['String', (s) => s.ran('stdout')],
  stderr: ['String', (s) => s.ran('stderr')],
  combinedOutput: ['String', (s) => s.ran('stdout') + s.ran('stderr')],
  envVariable: ['String', (s, a) => s.env[a.name] ?? null],
  from: ['Container', (s, a) => {
    if (/no-such/.test(a.address)) throw new Refused(`failed to resolve source metadata for docker.io/library/${a.address}: not found`);
    const c = new State(Tree.of());
    c.tree.live.add(c.files);
    return c;
  }],
  withExec: ['Container', withExec],
  withWorkdir: ['Container', (s, a) => s.also((c) => ({ workdir: path.posix.resolve(c.workdir, a.path) }))],
  withEnvVariable: ['Container', (s, a) => s.also((c) => { c.env[a.name] = a.value; })],
  withoutEnvVariable: ['Container', (s, a) => s.also((c) => { delete c.env[a.name]; })],
  withNewFile: ['Container', (s, a) => change(s, (host) => {
    fs.mkdirSync(path.dirname(host(a.path)), { recursive: true });
    fs.writeFileSync(host(a.path), a.contents);
    fs.chmodSync(host(a.path), a.permissions ?? 0o644);
  })],
  withFile: ['Container', (s, a) => change(s, (host) => {
    const from = thing(a.source, 'File').at();
    fs.mkdirSync(path.dirname(host(a.path)), { recursive: true });
    fs.copyFileSync(from, host(a.path));
    fs.chmodSync(host(a.path), a.permissions ?? fs.statSync(from).mode & 0o7777);
  })],
  withDirectory: ['Container', (s, a) => change(s, async (host) => {
    fs.mkdirSync(host(a.path), { recursive: true });
    await copy(thing(a.source, 'Directory').at(), host(a.path));
  })],
  withoutFile: ['Container', (s, a) => change(s, (host) => fs.rmSync(host(a.path), { force: true }))],
  withoutDirectory: ['Container', (s, a) => change(s, (host) => fs.rmSync(host(a.path), { recursive: true, force: true }))],
  file: ['File', (s, a) => place(s, 'File', a.path)],
  directory: ['Directory', (s, a) => place(s, 'Directory', a.path)],
  exists: ['Boolean', (s, a) => {
    const st = fs.lstatSync(s.tree.host(s, a.path), { throwIfNoEntry: false });
    const kind = { REGULAR_TYPE: 'isFile', DIRECTORY_TYPE: 'isDirectory', SYMLINK_TYPE: 'isSymbolicLink' }[a.expectedType];
    return Boolean(st && (!kind || st[kind]()));
  }],
};

const schema = {
  Query: {
    version: ['String', () => 'v0.21.9'],
    container: ['Container', () => new State(undefined)],
    host: ['Host', () => new Thing('Host')],
    node: ['Node', (_, a) => thing(a.id)],
    loadContainerFromID: ['Container', (_, a) => thing(a.id, 'Container')],
  },
  Host: { directory: ['Directory', (_, a) => new Place('Directory', () => a.path, path.basename(a.path))] },
  Container: container,
  Directory: {
    id: ['ID', (d) => d.id],
    sync: ['ID', (d) => d.id],
    entries: ['[String]', (d, a) => list(path.join(d.at(), a.path ?? ''))],
    file: ['File', (d, a) => new Place('File', () => path.join(d.at(), a.path), path.basename(a.path))],
    export: ['String', async (d, a) => {
      fs.mkdirSync(a.path, { recursive: true });
      if (a.wipe) wipe(a.path);
      await copy(d.at(), a.path);
      return a.path;
    }],
  },
  File: {
    id: ['ID', (f) => f.id],
    sync: ['ID', (f) => f.id],
    name: ['String', (f) => f.name],
    size: ['Int', (f) => fs.statSync(f.at()).size],
    contents: ['String', (f) => fs.readFileSync(f.at()).toString()],
    export: ['String', (f, a) => (fs.copyFileSync(f.at(), a.path), a.path)],
  },
  Node: { id: ['ID', (o) => o.id] },
};
if (opts.old) delete schema.Query.node;

// ---- queries ----

// All of a query is looked at before any of it runs.
function check(fields, type) {
  for (const f of fields) {
    if (f.on) {
      check(f.fields, f.on);
      continue;
    }
    const known = schema[type]?.[f.name];
    if (!known) throw new Fail(422, `Cannot query field "${f.name}" on type "${type}".`);
    const isObject = Boolean(schema[known[0]]);
    if (isObject !== Boolean(f.fields)) throw new Fail(422, `Field "${f.name}" of type "${known[0]}" ${isObject ? 'must' : 'must not'} have a selection.`);
    if (f.fields) check(f.fields, known[0]);
  }
}

// What was evaluated once is not again; what failed is. A directory that is shared is what it is now.
const fresh = (f) => opts.root && f.name === 'from';

function evaluate(type, object, f, gone) {
  const memo = object.memo;
  const key = f.name + JSON.stringify(f.args);
  if (f.name === 'from') counts.from++;
  if (!memo.has(key) || fresh(f)) {
    const value = Promise.resolve().then(() => schema[type][f.name][1](object, f.args, gone));
    value.catch(() => memo.delete(key));
    memo.set(key, value);
  }
  return memo.get(key);
}

async function select(fields, type, object, gone) {
  const found = {};
  for (const f of fields) {
    if (f.on) {
      if (object.type === f.on) Object.assign(found, await select(f.fields, f.on, object, gone));
      continue;
    }
    const value = await evaluate(type, object, f, gone).catch((e) => Promise.reject(Object.assign(cleanError(e), { at: [f.alias, ...(e.at ?? [])] })));
    found[f.alias] = f.fields ? await select(f.fields, schema[type][f.name][0], value, gone).catch((e) => Promise.reject(Object.assign(e, { at: [f.alias, ...(e.at ?? [])] }))) : value;
  }
  return found;
}

const root = new Thing('Query');

async function query(req, res) {
  const gone = new AbortController();
  res.on('close', () => res.writableFinished || gone.abort());
  const want = JSON.parse(await body(req));
  counts.queries++;
  try {
    const fields = parse(want.query);
    check(fields, 'Query');
    json(res, 200, { data: await select(fields, 'Query', root, gone.signal) });
  } catch (e) {
    if (!(e instanceof Refused) && !(e instanceof Fail)) console.error(e);
    json(res, e instanceof Fail ? e.status : 200, { data: null, errors: [{ message: e.message, path: e.at, extensions: e.extensions }] });
  }
}

function allowed(req) {
  const [kind, text] = (req.headers.authorization ?? '').split(' ');
  const [user, password] = Buffer.from(text ?? '', 'base64').toString().split(':');
  return kind === 'Basic' && password === '' && user && (!opts.token || user === opts.token);
}

async function handle(req, res) {
  if (req.url === '/_double/counts') return json(res, 200, counts);
  if (!allowed(req)) {
    res.writeHead(401, { 'WWW-Authenticate': 'Basic realm="Access to the Dagger engine session"' });
    return res.end();
  }
  if (req.method !== 'POST' || req.url !== '/query') throw new Fail(404, 'no such call');
  return query(req, res);
}

serve(handle, endAll, undefined, opts.session ? (port) => JSON.stringify({ port, session_token: opts.token }) : undefined);
