// vercel.mjs: a server that speaks as much of Vercel Sandbox's protocol as its own SDK uses, for
// offline tests.
//
//   node vercel.mjs [--root DIR] [--token TOKEN]
//
// Commands and files are those of a jail (box.mjs), one for each session. With --root every sandbox
// works in that directory of the host. A prefix /api of paths is as good as none. GET
// /_double/counts says how many requests of which kind have come.
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import zlib from 'node:zlib';
import { Box, Failed, endAll } from './box.mjs';
import { Fail, body, json, options, serve } from './serve.mjs';

const opts = options();
const sandboxes = new Map(); // by name
const sessions = new Map(); // by id
const snapshots = new Map(); // by id
const counts = {};
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'dbv-'));
const KEPT_MAX = 8 << 20; // bytes of log that a command can be asked for again
const newId = (kind) => `${kind}_${crypto.randomBytes(12).toString('hex')}`;

// ---- what is shown ----

function shownPolicy(p) {
  if (!p || p.mode) return p;
  const allow = p.allow && !Array.isArray(p.allow) ? Object.keys(p.allow) : p.allow;
  return { mode: 'custom', allowedDomains: allow, allowedCIDRs: p.subnets?.allow, deniedCIDRs: p.subnets?.deny };
}

function shownSession(n) {
  return { id: n.id, memory: 4096, vcpus: n.sandbox.vcpus, region: 'iad1', runtime: n.sandbox.runtime, timeout: n.timeout, status: n.status, requestedAt: n.started, startedAt: n.started, createdAt: n.started, updatedAt: Date.now(), cwd: n.box.dir, stoppedAt: n.stopped, sourceSnapshotId: n.source, networkPolicy: shownPolicy(n.policy) };
}

function shownSandbox(s) {
  return { name: s.name, persistent: s.persistent, createdAt: s.created, updatedAt: Date.now(), currentSessionId: s.session.id, status: s.session.status, runtime: s.runtime, image: s.image, timeout: s.timeout, vcpus: s.vcpus, memory: 4096, region: 'iad1', cwd: s.session.box.dir, tags: s.tags, currentSnapshotId: s.snapshot, networkPolicy: shownPolicy(s.policy) };
}

function both(s, resumed) {
  return { sandbox: shownSandbox(s), session: shownSession(s.session), routes: s.ports.map((port) => ({ url: `http://127.0.0.1:${port}`, subdomain: `sb-${s.name}-${port}`, port })), resumed };
}

function shownSnapshot({ dir, sandbox, ...rest }) {
  return rest;
}

function page(all, url, key, show) {
  const from = Number(url.searchParams.get('cursor') ?? 0);
  const limit = Number(url.searchParams.get('limit') ?? 20);
  const next = from + limit < all.length ? String(from + limit) : null;
  return { [key]: all.slice(from, from + limit).map(show), pagination: { count: all.length, next } };
}

// ---- sandboxes and sessions ----

async function startSession(s, source) {
  const box = await Box.make({ workspace: s.dir });
  const n = { id: newId('sbx'), sandbox: s, box, timeout: s.timeout, started: Date.now(), status: 'running', commands: new Map(), policy: s.policy, source };
  sessions.set(n.id, n);
  s.session = n;
  arm(n);
}

function arm(n) {
  clearTimeout(n.timer);
  n.timer = setTimeout(() => stopSession(n), Math.min(n.started + n.timeout - Date.now(), 0x7fffffff));
}

async function stopSession(n) {
  if (n.status !== 'running') return;
  n.status = 'stopped';
  n.stopped = Date.now();
  clearTimeout(n.timer);
  for (const c of n.commands.values()) c.child.kill('SIGKILL');
  await n.box.destroy();
}

async function create(want) {
  if (typeof want.projectId !== 'string') throw new Fail(400, 'projectId is missing', 'bad_request');
  if (want.image === 'no-such-image') throw new Fail(404, `image '${want.image}' not found`, 'not_found');
  const name = want.name ?? `sandbox-${crypto.randomBytes(6).toString('hex')}`;
  if (sandboxes.has(name)) throw new Fail(409, `sandbox '${name}' exists`, 'conflict');
  const from = want.source?.type === 'snapshot' ? snapshots.get(want.source.snapshotId) : undefined;
  if (want.source?.type === 'snapshot' && !from) throw new Fail(410, 'no such snapshot', 'snapshot_not_found');
  const dir = opts.root ?? fs.mkdtempSync(`${scratch}/w`);
  if (!opts.root) fs.chmodSync(dir, 0o755);
  if (from) fs.cpSync(from.dir, dir, { recursive: true, preserveTimestamps: true });
  const s = { name, dir, persistent: want.persistent ?? true, created: Date.now(), timeout: want.timeout ?? 300000, runtime: want.runtime, image: want.image, tags: want.tags ?? {}, policy: want.networkPolicy, vcpus: want.resources?.vcpus ?? 2, env: want.env ?? {}, ports: want.ports ?? [] };
  sandboxes.set(name, s);
  await startSession(s, from?.id).catch((e) => (sandboxes.delete(name), Promise.reject(e)));
  return both(s);
}

async function remove(s, url) {
  await stopSession(s.session);
  sandboxes.delete(s.name);
  const orphans = url.searchParams.get('deleteOrphanSnapshots') === 'true';
  for (const n of snapshots.values()) if (orphans && n.sandbox === s.name) snapshots.delete(n.id);
  if (!opts.root) fs.rmSync(s.dir, { recursive: true, force: true });
}

async function get(s, url) {
  const resume = url.searchParams.get('resume') === 'true' && s.session.status !== 'running' && s.persistent;
  if (resume) await startSession(s, s.snapshot);
  return both(s, resume || undefined);
}

async function update(s, want) {
  for (const key of ['persistent', 'timeout', 'tags', 'ports']) if (want[key] !== undefined) s[key] = want[key];
  if (want.networkPolicy) s.policy = want.networkPolicy;
  if (want.resources?.vcpus) s.vcpus = want.resources.vcpus;
  return { sandbox: shownSandbox(s), routes: both(s).routes };
}

function list(url) {
  const prefix = url.searchParams.get('namePrefix') ?? '';
  let all = [...sandboxes.values()].filter((s) => s.name.startsWith(prefix));
  for (const tag of url.searchParams.getAll('tags')) {
    const [k, ...v] = tag.split(':');
    all = all.filter((s) => s.tags[k] === v.join(':'));
  }
  return page(all, url, 'sandboxes', shownSandbox);
}

async function snapshot(n, want) {
  const id = newId('snap');
  const dir = fs.mkdtempSync(`${scratch}/s`);
  fs.cpSync(n.sandbox.dir, dir, { recursive: true, preserveTimestamps: true });
  snapshots.set(id, { id, sourceSessionId: n.id, region: 'iad1', status: 'created', sizeBytes: 1, createdAt: Date.now(), updatedAt: Date.now(), expiresAt: want.expiration ? Date.now() + want.expiration : undefined, dir, sandbox: n.sandbox.name });
  n.sandbox.snapshot = id;
  await stopSession(n);
  return { snapshot: shownSnapshot(snapshots.get(id)), session: shownSession(n) };
}

// ---- commands ----

function shownCommand(n, c) {
  return { id: c.id, name: c.name, args: c.args, cwd: c.cwd, sessionId: n.id, exitCode: c.exitCode, startedAt: c.started, durationMs: c.ended ? c.ended - c.started : undefined };
}

const line = (value) => `${JSON.stringify(value)}\n`;

function tell(c, value) {
  const text = line(value);
  if (c.keptSize < KEPT_MAX) {
    c.kept.push(text);
    c.keptSize += text.length;
  }
  for (const res of c.listeners) if (!res.write(text)) hold(c, res);
}

// Output waits for the slowest of those who listen.
function hold(c, res) {
  if (c.slow.has(res)) return;
  c.slow.add(res);
  c.child.stdout.pause(), c.child.stderr.pause();
  const go = () => {
    res.off('drain', go).off('close', go);
    c.slow.delete(res);
    if (!c.slow.size) c.child.stdout.resume(), c.child.stderr.resume();
  };
  res.on('drain', go).on('close', go);
}

// Text, as the real one: what is not UTF-8 is not what it was.
function launch(n, want) {
  const envs = { ...n.sandbox.env, ...want.env };
  const child = n.box.spawn(want.command, want.args ?? [], { cwd: want.cwd, envs });
  const c = { id: newId('cmd'), name: want.command, args: want.args ?? [], cwd: want.cwd ?? n.box.dir, exitCode: null, started: Date.now(), child, kept: [], keptSize: 0, listeners: new Set(), slow: new Set() };
  for (const stream of ['stdout', 'stderr']) {
    const decoder = new StringDecoder('utf8');
    const say = (data) => data && tell(c, { stream, data });
    child[stream].on('data', (d) => say(decoder.write(d))).on('end', () => say(decoder.end()));
  }
  const timer = want.timeout ? setTimeout(() => child.kill('SIGKILL'), Math.min(want.timeout, 0x7fffffff)) : undefined;
  c.over = new Promise((go) =>
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      c.exitCode = code ?? 128 + (os.constants.signals[signal] ?? 9);
      c.ended = Date.now();
      go();
    }),
  );
  n.commands.set(c.id, c);
  return c;
}

function openLines(res) {
  res.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
  res.flushHeaders();
  const alive = setInterval(() => res.write('\n'), 50000);
  res.on('close', () => clearInterval(alive));
}

function follow(c, res) {
  c.listeners.add(res);
  res.on('close', () => c.listeners.delete(res));
}

async function run(n, want, res) {
  if (typeof want.command !== 'string') throw new Fail(400, 'command is missing', 'bad_request');
  if (want.cwd) await n.box.stat(want.cwd).catch(() => Promise.reject(new Fail(400, `cwd '${want.cwd}' does not exist`, 'bad_request')));
  counts.start = (counts.start ?? 0) + 1;
  let c;
  try {
    c = launch(n, want);
    await new Promise((resolve, reject) => c.child.once('spawn', resolve).once('error', reject));
  } catch (e) {
    n.commands.delete(c?.id);
    throw new Fail(400, e.code === 'E2BIG' ? 'argument list too long' : e.message, 'bad_request');
  }
  if (!want.wait) return json(res, 200, { command: shownCommand(n, c) });
  openLines(res);
  res.write(line({ command: shownCommand(n, c) }));
  if (want.logs) follow(c, res);
  await c.over;
  res.end(line({ command: shownCommand(n, c) }));
}

async function logs(c, res) {
  openLines(res);
  for (const text of c.kept) res.write(text);
  follow(c, res);
  await c.over;
  res.end();
}

async function command(req, res, n, id, verb, url) {
  const c = n.commands.get(id);
  if (!c) throw new Fail(404, `command '${id}' not found`, 'not_found');
  if (verb === 'logs') return logs(c, res);
  if (verb === 'kill') c.child.kill(JSON.parse(await body(req)).signal ?? 15);
  else if (url.searchParams.get('wait') === 'true') {
    res.writeHead(200, { 'Content-Type': 'application/json' });
    res.flushHeaders();
    await c.over;
    return res.end(JSON.stringify({ command: shownCommand(n, c) }));
  }
  return json(res, 200, { command: shownCommand(n, c) });
}

// ---- files ----

const FILE_STATUS = { not_found: 404, wrong_type: 400, invalid: 400, denied: 403, outside: 403, exists: 400 };

function fileFail(e) {
  throw e instanceof Failed ? new Fail(FILE_STATUS[e.code] ?? 500, e.message, e.code) : e;
}

const text = (raw) => raw.toString().replace(/\0.*$/s, '');

// { name, mode, data } of each file in a tar, with names as pax says them.
function* entries(tar) {
  let long;
  for (let at = 0; at + 512 <= tar.length; ) {
    const head = tar.subarray(at, at + 512);
    if (!head.some(Boolean)) return;
    const size = parseInt(text(head.subarray(124, 136)), 8);
    const data = tar.subarray(at + 512, at + 512 + size);
    const type = String.fromCharCode(head[156]);
    at += 512 + Math.ceil(size / 512) * 512;
    if (data.length !== size) throw new Fail(400, 'the tar is cut off', 'bad_request');
    if (type === 'x') {
      long = /^\d+ path=(.*)\n$/m.exec(data.toString())?.[1] ?? long;
      continue;
    }
    if (type !== '0' && type !== '\0') throw new Fail(400, `entry of type ${type}`, 'bad_request');
    const prefix = text(head.subarray(345, 500));
    const name = long ?? (prefix ? `${prefix}/` : '') + text(head.subarray(0, 100));
    long = undefined;
    if (name.startsWith('/') || name.split('/').includes('..')) throw new Fail(400, `name '${name}'`, 'bad_request');
    yield { name, mode: parseInt(text(head.subarray(100, 108)), 8) & 0o7777, data };
  }
}

async function chmod(n, file, mode) {
  const child = n.box.spawn('chmod', [mode.toString(8), file]);
  child.stdout.resume(), child.stderr.resume();
  await new Promise((go) => child.on('close', go));
}

async function write(n, req) {
  if (req.headers['content-type'] !== 'application/gzip') throw new Fail(400, 'not a gzip', 'bad_request');
  if (!req.headers['content-length']) throw new Fail(411, 'no length', 'bad_request');
  let tar;
  try {
    tar = zlib.gunzipSync(await body(req));
  } catch (e) {
    throw new Fail(400, e.message, 'bad_request');
  }
  for (const e of entries(tar)) {
    const file = path.posix.join(req.headers['x-cwd'] ?? n.box.dir, e.name);
    await n.box.write(file, e.data).catch(fileFail);
    if (e.mode !== 0o644) await chmod(n, file, e.mode);
  }
}

async function read(n, want, res) {
  const file = path.posix.resolve(want.cwd ?? n.box.dir, want.path);
  const info = await n.box.stat(file).catch(fileFail);
  if (info.is_dir) throw new Fail(400, `'${file}' is a directory`, 'bad_request');
  res.writeHead(200, { 'Content-Type': 'application/octet-stream' });
  n.box.cat(file).stdout.pipe(res);
}

async function mkdir(n, want) {
  const dir = path.posix.resolve(want.cwd ?? n.box.dir, want.path);
  if (await n.box.stat(dir).catch(() => undefined)) throw new Fail(400, `'${dir}' exists`, 'file_exists');
  await n.box.call('mkdir', '--', dir).catch(fileFail);
}

// ---- requests ----

const said = async (req) => JSON.parse((await body(req)).toString() || '{}');

async function onSession(req, res, n, rest, url) {
  if (req.method === 'GET' && !rest.length) return json(res, 200, { session: shownSession(n), routes: [] });
  if (n.status !== 'running') throw new Fail(410, 'the session has ended', 'sandbox_stopped');
  if (rest[0] === 'cmd' && rest[1]) return command(req, res, n, rest[1], rest[2], url);
  switch (`${req.method} ${rest.join('/')}`) {
    case 'POST cmd':
      return run(n, await said(req), res);
    case 'POST fs/write':
      return json(res, 200, (await write(n, req)) ?? {});
    case 'POST fs/read':
      return read(n, await said(req), res);
    case 'POST fs/mkdir':
      return json(res, 200, (await mkdir(n, await said(req))) ?? {});
    case 'POST stop':
      await stopSession(n);
      return json(res, 200, { session: shownSession(n), sandbox: shownSandbox(n.sandbox) });
    case 'POST extend-timeout':
      n.timeout += (await said(req)).duration;
      arm(n);
      return json(res, 200, { session: shownSession(n) });
    case 'POST network-policy':
      n.policy = await said(req);
      return json(res, 200, { session: shownSession(n) });
    case 'POST snapshot':
      return json(res, 200, await snapshot(n, await said(req)));
    default:
      throw new Fail(404, 'no such call', 'not_found');
  }
}

async function onSnapshot(req, res, id, url) {
  if (!id) return json(res, 200, page([...snapshots.values()], url, 'snapshots', shownSnapshot));
  const s = snapshots.get(id);
  if (!s) throw new Fail(404, 'no such snapshot', 'not_found');
  if (req.method === 'DELETE') snapshots.delete(id), (s.status = 'deleted');
  return json(res, 200, { snapshot: shownSnapshot(s) });
}

async function onSandbox(req, res, s, verb, url) {
  switch (`${req.method} ${verb ?? ''}`) {
    case 'GET ':
      return json(res, 200, await get(s, url));
    case 'PATCH ':
      return json(res, 200, await update(s, await said(req)));
    case 'DELETE ':
      await remove(s, url);
      return json(res, 200, { sandbox: shownSandbox(s) });
    default:
      throw new Fail(404, 'no such call', 'not_found');
  }
}

async function route(req, res, url) {
  const token = /^Bearer (.+)$/.exec(req.headers.authorization ?? '')?.[1];
  if (!token || (opts.token && token !== opts.token)) throw new Fail(401, 'not authorized', 'unauthorized');
  if (!url.searchParams.get('teamId')) throw new Fail(403, 'no team', 'forbidden');
  const [version, root, ...rest] = url.pathname.replace(/^\/api(?=\/)/, '').split('/').slice(1).map(decodeURIComponent);
  if (root !== 'sandboxes' || !/^v[23]$/.test(version)) throw new Fail(404, 'no such call', 'not_found');
  if (!rest.length && req.method === 'POST') return json(res, 200, await create(await said(req)));
  if (version !== 'v2') throw new Fail(404, 'no such call', 'not_found');
  if (!rest.length) return json(res, 200, list(url));
  if (rest[0] === 'snapshots') return onSnapshot(req, res, rest[1], url);
  if (rest[0] === 'sessions' && !rest[1]) return json(res, 200, page([...sessions.values()].filter((n) => !url.searchParams.get('name') || n.sandbox.name === url.searchParams.get('name')), url, 'sessions', shownSession));
  if (rest[0] === 'sessions') {
    const n = sessions.get(rest[1]);
    if (!n) throw new Fail(404, `session '${rest[1]}' not found`, 'not_found');
    return onSession(req, res, n, rest.slice(2), url);
  }
  const s = sandboxes.get(rest[0]);
  if (!s) throw new Fail(404, `sandbox '${rest[0]}' not found`, 'not_found');
  return onSandbox(req, res, s, rest[1], url);
}

serve(
  async (req, res) => {
    const url = new URL(req.url, 'http://double');
    if (url.pathname === '/_double/counts') return json(res, 200, counts);
    const name = `${req.method} ${url.pathname.replace(/(sbx|cmd|snap)_[0-9a-f]{24}/g, 'ID').replace(/caisson-[^/]+/, 'NAME')}`;
    counts[name] = (counts[name] ?? 0) + 1;
    try {
      await route(req, res, url);
    } catch (e) {
      if (!(e instanceof Fail)) console.error(e);
      if (res.headersSent) return res.destroy();
      json(res, e.status ?? 500, { error: { code: e.code ?? 'internal', message: e.message } });
    }
  },
  async () => {
    for (const n of sessions.values()) for (const c of n.commands.values()) c.child.kill('SIGKILL');
    await endAll();
    fs.rmSync(scratch, { recursive: true, force: true });
  },
);
