// e2b.mjs: a server that speaks as much of E2B's protocol as its own SDK uses, for offline tests.
//
//   node e2b.mjs [--root DIR] [--key KEY]
//
// Control plane and envd on one plain port; commands and files are those of a jail (box.mjs). With
// --root every sandbox works in that directory of the host. GET /_double/counts says how many
// requests of which kind have come, /_double/last what the last sandbox was asked to be.
import crypto from 'node:crypto';
import zlib from 'node:zlib';
import { Box, Failed, endAll } from './box.mjs';
import { Fail, body, json, options, serve } from './serve.mjs';

const opts = options();
const sandboxes = new Map();
const counts = {};
let last = {};
const GO_SIGNALS = { 1: 'hangup', 2: 'interrupt', 3: 'quit', 4: 'illegal instruction', 6: 'aborted', 8: 'floating point exception', 9: 'killed', 10: 'user defined signal 1', 11: 'segmentation fault', 12: 'user defined signal 2', 13: 'broken pipe', 14: 'alarm clock', 15: 'terminated' };

// ---- sandboxes ----

const iso = (ms) => new Date(ms).toISOString();

function shown(s) {
  return { sandboxID: s.id, templateID: s.template, clientID: 'double', envdVersion: '0.6.4', startedAt: iso(s.started), endAt: iso(s.ends), state: s.paused ? 'paused' : 'running', cpuCount: 2, memoryMB: 512, diskSizeMB: 1024, metadata: s.metadata };
}

function handed(s) {
  return { sandboxID: s.id, templateID: s.template, clientID: 'double', envdVersion: '0.6.4', envdAccessToken: s.token, domain: null, trafficAccessToken: null };
}

function setEnd(s, seconds) {
  clearTimeout(s.timer);
  s.ends = Date.now() + seconds * 1000;
  s.timer = setTimeout(() => (s.autoPause ? (s.paused = true) : end(s)), Math.min(seconds * 1000, 0x7fffffff));
}

async function create(req, res) {
  const want = (last = JSON.parse(await body(req)));
  if (typeof want.templateID !== 'string') throw new Fail(400, 'templateID is missing');
  if (want.templateID === 'no-such-template') throw new Fail(404, `template '${want.templateID}' not found`);
  const box = await Box.make({ workspace: opts.root });
  const s = { id: `i${crypto.randomBytes(9).toString('hex')}`, token: `ea_${crypto.randomBytes(12).toString('hex')}`, template: want.templateID, metadata: want.metadata ?? {}, envs: want.envVars ?? {}, autoPause: want.autoPause, network: want.network, started: Date.now(), processes: new Map(), box };
  sandboxes.set(s.id, s);
  setEnd(s, want.timeout ?? 300);
  json(res, 201, handed(s));
}

async function end(s) {
  if (!sandboxes.delete(s.id)) return;
  clearTimeout(s.timer);
  for (const p of s.processes.values()) p.child.kill('SIGKILL');
  await s.box.destroy();
}

function list(url, res) {
  let all = [...sandboxes.values()].map(shown);
  const states = url.searchParams.get('state')?.split(',');
  if (states) all = all.filter((s) => states.includes(s.state));
  for (const [k, v] of new URLSearchParams(url.searchParams.get('metadata') ?? ''))
    all = all.filter((s) => s.metadata[decodeURIComponent(k)] === decodeURIComponent(v));
  all.sort((a, b) => (a.startedAt < b.startedAt ? -1 : 1));
  const from = Number(url.searchParams.get('nextToken') ?? 0);
  const limit = Number(url.searchParams.get('limit') ?? 100);
  if (from + limit < all.length) res.setHeader('x-next-token', String(from + limit));
  json(res, 200, all.slice(from, from + limit));
}

async function control(req, res, url) {
  const key = req.headers['x-api-key'];
  if (!key || (opts.key && key !== opts.key)) throw new Fail(401, 'invalid API key');
  const [, id, verb] = url.pathname.match(/^(?:\/v2)?\/sandboxes(?:\/([^/]+))?(?:\/([^/]+))?$/) ?? [];
  if (!id && req.method === 'POST') return create(req, res);
  if (!id && req.method === 'GET') return list(url, res);
  const s = sandboxes.get(id);
  if (!s) throw new Fail(404, `sandbox '${id}' not found`);
  const said = req.method === 'POST' ? JSON.parse((await body(req)).toString() || '{}') : {};
  switch (`${req.method} ${verb ?? ''}`) {
    case 'GET ':
      return json(res, 200, { ...shown(s), envdAccessToken: s.token, domain: null, allowInternetAccess: null });
    case 'DELETE ':
      await end(s);
      return json(res, 204);
    case 'POST timeout':
      setEnd(s, said.timeout);
      return json(res, 204);
    case 'POST connect':
    case 'POST resume': {
      const was = s.paused;
      s.paused = false;
      const seconds = said.timeout ?? 300; // only ever longer, while it runs
      if (was || Date.now() + seconds * 1000 > s.ends) setEnd(s, seconds);
      return json(res, was ? 201 : 200, handed(s));
    }
    case 'POST pause':
      if (s.paused) throw new Fail(409, 'already paused');
      s.paused = true;
      return json(res, 204);
    case 'PUT network':
      s.network = JSON.parse(await body(req));
      return json(res, 204);
    default:
      throw new Fail(404, 'no such call');
  }
}

// ---- Connect ----

const CODES = { not_found: 'not_found', exists: 'already_exists', wrong_type: 'invalid_argument', invalid: 'invalid_argument', denied: 'permission_denied', outside: 'permission_denied', conflict: 'failed_precondition', io: 'internal', unavailable: 'unavailable' };
const STATUS = { not_found: 404, already_exists: 409, invalid_argument: 400, permission_denied: 403, failed_precondition: 400, unauthenticated: 401, unavailable: 503, internal: 500, unimplemented: 501 };

class Refuse extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

function refusal(e) {
  if (e instanceof Refuse) return e;
  if (e instanceof Failed) return new Refuse(CODES[e.code] ?? 'internal', e.message);
  console.error(e);
  return new Refuse('internal', e.message);
}

function frame(flag, value) {
  const text = Buffer.from(JSON.stringify(value));
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(text.length, 1);
  return Buffer.concat([head, text]);
}

async function unframe(req) {
  const raw = await body(req);
  if (raw.length < 5 || raw.readUInt32BE(1) !== raw.length - 5) throw new Fail(400, 'not one frame');
  return JSON.parse(raw.subarray(5));
}

function openStream(req, res, keepalive = { event: { keepalive: {} } }) {
  res.writeHead(200, { 'Content-Type': 'application/connect+json' });
  const seconds = Number(req.headers['keepalive-ping-interval'] ?? 0);
  const alive = seconds ? setInterval(() => res.write(frame(0, keepalive)), seconds * 1000) : undefined;
  res.on('close', () => clearInterval(alive));
}

function closeStream(res, error) {
  if (!res.writableEnded) res.end(frame(2, error ? { error: { code: error.code, message: error.message } } : {}));
}

// ---- processes ----

// number: of the signal that ended it, as seen inside; signal: one that ended the program outside.
function ended(code, signal, seen) {
  const number = signal ? { SIGKILL: 9, SIGTERM: 15 }[signal] ?? 9 : seen;
  if (number) {
    const status = `signal: ${GO_SIGNALS[number] ?? `signal ${number}`}`;
    return { exitCode: -1, status, error: status };
  }
  const status = `exit status ${code}`;
  return code ? { exitCode: code, exited: true, status, error: status } : { exited: true, status };
}

// Output goes to those who listen; when nobody does it is dropped, and the process lives on.
function tell(p, event) {
  const data = frame(0, { event });
  for (const res of p.listeners) if (!res.write(data)) p.pause(res);
}

function listen(p, req, res) {
  openStream(req, res);
  res.write(frame(0, { event: { start: { pid: p.pid } } }));
  p.listeners.add(res);
  res.on('close', () => p.listeners.delete(res));
}

function launch(s, want) {
  const { cmd, args = [], envs = {}, cwd } = want.process;
  const child = s.box.spawn(cmd, args, { cwd, envs: { ...s.envs, ...envs }, stdin: want.stdin !== false });
  const p = { child, config: want.process, tag: want.tag, listeners: new Set(), pid: child.pid };
  let full = 0; // how many listeners cannot take more
  p.pause = (res) => {
    if (res.full) return;
    res.full = true;
    if (full++ === 0) child.stdout.pause(), child.stderr.pause();
    const go = () => {
      res.off('drain', go).off('close', go);
      res.full = false;
      if (--full === 0) child.stdout.resume(), child.stderr.resume();
    };
    res.on('drain', go).on('close', go);
  };
  for (const name of ['stdout', 'stderr'])
    child[name].on('data', (d) => {
      for (let i = 0; i < d.length; i += 32768) tell(p, { data: { [name]: d.subarray(i, i + 32768).toString('base64') } });
    });
  child.stdin?.on('error', () => {});
  return p;
}

async function start(s, req, res) {
  const want = await unframe(req);
  counts.start = (counts.start ?? 0) + 1;
  let p;
  try {
    if (want.process.cwd) await s.box.stat(want.process.cwd).catch(() => Promise.reject(new Refuse('invalid_argument', `cwd '${want.process.cwd}' does not exist`)));
    p = launch(s, want);
    await new Promise((resolve, reject) => p.child.once('spawn', resolve).once('error', (e) => reject(new Refuse('invalid_argument', e.message))));
  } catch (e) {
    openStream(req, res);
    return closeStream(res, e.code === 'E2BIG' ? new Refuse('invalid_argument', 'argument list too long') : refusal(e));
  }
  s.processes.set(p.pid, p);
  listen(p, req, res);
  let late;
  const limit = Number(req.headers['connect-timeout-ms'] ?? 0);
  const timer = limit ? setTimeout(() => ((late = new Refuse('deadline_exceeded', 'the deadline passed')), p.child.kill('SIGKILL')), limit) : undefined;
  p.child.on('close', async (code, signal) => {
    clearTimeout(timer);
    s.processes.delete(p.pid);
    const seen = await s.box.signalOf(p.child, code ?? 0);
    if (!late) tell(p, { end: ended(code, signal, seen) });
    for (const l of p.listeners) closeStream(l, late);
  });
}

function processOf(s, want) {
  const { pid, tag } = want.process ?? {};
  const p = pid !== undefined ? s.processes.get(pid) : [...s.processes.values()].find((q) => q.tag === tag);
  if (!p) throw new Refuse('not_found', `process with pid ${pid} not found`);
  return p;
}

const processCalls = {
  List: (s) => ({ processes: [...s.processes.values()].map((p) => ({ config: p.config, pid: p.pid, tag: p.tag })) }),
  SendInput: (s, q) => new Promise((resolve, reject) => {
    const p = processOf(s, q);
    if (!p.child.stdin) return reject(new Refuse('failed_precondition', 'stdin is not open'));
    p.child.stdin.write(Buffer.from(q.input?.stdin ?? q.input?.pty ?? '', 'base64'), (e) => (e ? reject(new Refuse('internal', e.message)) : resolve({})));
  }),
  CloseStdin: (s, q) => (processOf(s, q).child.stdin?.end(), {}),
  SendSignal: (s, q) => (processOf(s, q).child.kill(/KILL|^9$/.test(String(q.signal)) ? 'SIGKILL' : 'SIGTERM'), {}),
};

// ---- files ----

const TYPES = { file: 'FILE_TYPE_FILE', dir: 'FILE_TYPE_DIRECTORY', link: 'FILE_TYPE_SYMLINK' };

function absolute(s, file) {
  return file.startsWith('/') ? file : `${s.box.dir}/${file.replace(/^~\/?/, '')}`;
}

function entry(dir, i) {
  const mode = parseInt(i.mode, 8);
  const letters = [...'rwxrwxrwx'].map((c, k) => (mode & (0o400 >> k) ? c : '-')).join('');
  const kind = i.is_symlink ? 'link' : i.is_dir ? 'dir' : 'file';
  const full = dir === undefined ? i.path : `${dir.replace(/\/$/, '')}/${i.path}`;
  return { name: full.split('/').filter(Boolean).pop() ?? '/', type: TYPES[kind], path: full, size: String(i.size), mode, permissions: { dir: 'd', link: 'L', file: '-' }[kind] + letters, owner: 'user', group: 'user', modifiedTime: i.modified_at, symlinkTarget: i.target ?? undefined };
}

async function statEntry(s, file) {
  return entry(undefined, await s.box.stat(absolute(s, file)));
}

async function listDir(s, dir, depth) {
  const found = [];
  for (const i of await s.box.call('ls', '-l', '--', dir)) {
    const e = entry(dir, i);
    found.push(e);
    if (depth > 1 && i.is_dir) found.push(...(await listDir(s, e.path, depth - 1)));
  }
  return found;
}

const fileCalls = {
  Stat: async (s, q) => ({ entry: await statEntry(s, q.path) }),
  ListDir: async (s, q) => ({ entries: await listDir(s, absolute(s, q.path), q.depth || 1) }),
  MakeDir: async (s, q) => {
    const there = await s.box.stat(absolute(s, q.path)).catch(() => undefined);
    if (there) throw new Refuse(there.is_dir ? 'already_exists' : 'invalid_argument', `${q.path} exists`);
    await s.box.call('mkdir', '--', absolute(s, q.path));
    return { entry: await statEntry(s, q.path) };
  },
  Move: async (s, q) => {
    await s.box.call('mkdir', '--', absolute(s, q.destination).replace(/\/[^/]*$/, '') || '/').catch(() => {});
    await s.box.call('mv', '--', absolute(s, q.source), absolute(s, q.destination));
    return { entry: await statEntry(s, q.destination) };
  },
  Remove: async (s, q) => (await s.box.call('rm', '-r', '--', absolute(s, q.path)), {}),
};

// envd tells a rename within as the old name's RENAME and the new one's CREATE; the jail as delete
// and rename. Other deletions are what they seem, if nothing follows at once.
class Renames {
  constructor(say) {
    this.say = say;
  }
  flush() {
    clearTimeout(this.timer);
    if (this.held) this.say('EVENT_TYPE_REMOVE', this.held);
    this.held = undefined;
  }
  take(e) {
    if (e.event === 'rename' && this.held) {
      this.say('EVENT_TYPE_RENAME', this.held);
      this.held = undefined;
    }
    this.flush();
    if (e.event === 'delete') {
      this.held = e;
      this.timer = setTimeout(() => this.flush(), 30);
    } else this.say(e.event === 'modify' ? 'EVENT_TYPE_WRITE' : 'EVENT_TYPE_CREATE', e);
  }
}

// Makes and removes a file until the watch tells of it: then it stands.
async function untilSeen(s, dir, seen) {
  const probe = `${dir}/.double-${crypto.randomUUID()}`;
  while (!seen()) {
    await s.box.write(probe, 'x').catch(() => {});
    await s.box.call('rm', '--', probe).catch(() => {});
  }
}

async function watchDir(s, req, res) {
  const want = await unframe(req);
  const dir = absolute(s, want.path);
  openStream(req, res, { keepalive: {} });
  const there = await s.box.stat(dir).catch((e) => e);
  if (there instanceof Error) return closeStream(res, refusal(there));
  if (!there.is_dir) return closeStream(res, new Refuse('invalid_argument', 'not a directory'));
  const child = s.box.watch(dir, want.recursive);
  const renames = new Renames((type, e) => {
    const entry = { name: e.path.split('/').pop(), path: `${dir}/${e.path}`, type: e.is_dir ? TYPES.dir : TYPES.file };
    const gone = /REMOVE|RENAME/.test(type);
    res.write(frame(0, { filesystem: { name: e.path, type, entry: want.includeEntry && !gone ? entry : undefined } }));
  });
  let rest = '', stands = false, begun = false;
  child.stdout.on('data', (d) => {
    const lines = (rest + d).split('\n');
    rest = lines.pop();
    for (const e of lines.filter(Boolean).map((l) => JSON.parse(l))) {
      if (e.event === 'overflow') return closeStream(res, new Refuse('internal', 'watcher error: fsnotify: queue or buffer overflow')), child.kill();
      if (/(^|\/)\.double-/.test(e.path)) stands = true;
      else if (begun && !res.writableEnded) renames.take(e);
    }
  });
  child.on('close', () => ((stands = true), renames.flush(), closeStream(res)));
  res.on('close', () => child.kill('SIGTERM'));
  await untilSeen(s, dir, () => stands);
  begun = true;
  if (!res.writableEnded) res.write(frame(0, { start: {} }));
}

// ---- /files ----

const FILE_STATUS = { not_found: 404, wrong_type: 400, invalid: 400, denied: 403, outside: 403 };

function fileFail(e) {
  return e instanceof Failed ? new Fail(FILE_STATUS[e.code] ?? 500, e.message) : e;
}

// The parts of a form: { name, filename, data }.
function formParts(raw, type) {
  const mark = Buffer.from(`--${type.match(/boundary="?([^";]+)/)[1]}`);
  const parts = [];
  for (let at = raw.indexOf(mark); ; ) {
    const from = at + mark.length + 2;
    const next = raw.indexOf(mark, from);
    if (next < 0) return parts;
    const head = raw.indexOf('\r\n\r\n', from);
    const text = raw.subarray(from, head).toString();
    parts.push({ name: text.match(/name="([^"]*)"/)?.[1], filename: text.match(/filename="([^"]*)"/)?.[1], data: raw.subarray(head + 4, next - 2) });
    at = next;
  }
}

async function upload(s, req, res, url) {
  const type = req.headers['content-type'] ?? '';
  const at = url.searchParams.get('path');
  let files;
  if (type.startsWith('multipart/form-data'))
    files = formParts(await body(req), type).filter((p) => p.name === 'file').map((p) => ({ path: at ?? p.filename, data: p.data }));
  else files = [{ path: at, data: req.headers['content-encoding'] === 'gzip' ? req.pipe(zlib.createGunzip()) : req }];
  const done = [];
  for (const f of files) {
    const full = absolute(s, f.path);
    await s.box.write(full, f.data).catch((e) => Promise.reject(fileFail(e)));
    done.push({ path: full, name: full.split('/').pop(), type: 'file' });
  }
  json(res, 200, done);
}

// "bytes=A-B" of a file of that size -> [A, B], or nothing when it is no such range.
function range(text, size) {
  const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(text ?? '') ?? [];
  return from === undefined || Number(from) >= size ? undefined : [Number(from), Math.min(to ? Number(to) : size - 1, size - 1)];
}

async function download(s, req, res, url) {
  const file = absolute(s, url.searchParams.get('path'));
  const info = await s.box.stat(file).catch((e) => Promise.reject(fileFail(e)));
  if (info.is_dir) throw new Fail(400, `path '${file}' is a directory`);
  const part = range(req.headers.range, info.size);
  const head = { 'Content-Type': 'application/octet-stream', 'Accept-Ranges': 'bytes' };
  if (part) res.writeHead(206, { ...head, 'Content-Range': `bytes ${part[0]}-${part[1]}/${info.size}`, 'Content-Length': part[1] - part[0] + 1 });
  else res.writeHead(200, head);
  const child = s.box.cat(file);
  res.on('close', () => child.kill());
  if (!part) return child.stdout.pipe(res);
  let at = 0;
  child.stdout.on('data', (d) => {
    const piece = d.subarray(Math.max(0, part[0] - at), Math.max(0, part[1] + 1 - at));
    at += d.length;
    if (piece.length && !res.write(piece)) child.stdout.pause(), res.once('drain', () => child.stdout.resume());
  });
  child.stdout.on('end', () => res.end());
}

// ---- envd ----

async function unary(call, s, req, res) {
  try {
    json(res, 200, await call(s, JSON.parse((await body(req)).toString() || '{}')));
  } catch (e) {
    const r = refusal(e);
    json(res, STATUS[r.code] ?? 500, { code: r.code, message: r.message });
  }
}

async function envd(req, res, url) {
  const s = sandboxes.get(req.headers['e2b-sandbox-id']);
  if (!s || s.paused) throw new Fail(502, 'the sandbox was not found', 502);
  if (url.pathname === '/health') return json(res, 204);
  if (req.headers['x-access-token'] !== s.token) throw new Fail(401, 'invalid access token');
  if (url.pathname === '/files') return req.method === 'POST' ? upload(s, req, res, url) : download(s, req, res, url);
  const [, service, method] = url.pathname.match(/^\/(process\.Process|filesystem\.Filesystem)\/(\w+)$/) ?? [];
  if (service === 'process.Process' && method === 'Start') return start(s, req, res);
  if (service === 'process.Process' && method === 'Connect') {
    const want = await unframe(req);
    try {
      listen(processOf(s, want), req, res);
      counts.connected = (counts.connected ?? 0) + 1;
      return;
    } catch (e) {
      openStream(req, res);
      return closeStream(res, refusal(e));
    }
  }
  if (service === 'filesystem.Filesystem' && method === 'WatchDir') return watchDir(s, req, res);
  const call = (service === 'process.Process' ? processCalls : fileCalls)[method];
  if (!service || !call) throw new Fail(404, 'no such call');
  return unary(call, s, req, res);
}

serve(
  (req, res) => {
    const url = new URL(req.url, 'http://double');
    const name = `${req.method} ${url.pathname.replace(/i[0-9a-f]{18}/, 'ID')}`;
    if (url.pathname === '/_double/counts') return json(res, 200, counts);
    if (url.pathname === '/_double/last') return json(res, 200, last);
    counts[name] = (counts[name] ?? 0) + 1;
    return /^(\/v2)?\/sandboxes/.test(url.pathname) ? control(req, res, url) : envd(req, res, url);
  },
  async () => {
    for (const s of sandboxes.values()) for (const p of s.processes.values()) p.child.kill('SIGKILL');
    await endAll();
  },
);
