// fault.mjs: a proxy that breaks things on purpose, for all doubles and for real servers.
//
//   node fault.mjs --to PORT
//
// Passes everything on until POST /_fault says otherwise:
//   { match, body, mode, times, bytes, status, delay, retryAfter }
// match is a regular expression over "METHOD /path", body (if given) one over the request's body;
// times is how often it applies (default once).
// Modes: status (answer it, pass nothing on), status-after (pass it on, drop the answer, say status),
// drop, drop-after (close instead of an answer), cut (close after `bytes` of the body), slow (wait
// `delay` ms first), hang, json (a body that is none), length (announce more than comes; in a
// Connect stream, a frame that is longer than it says it is), endless. GET /_fault: { hits, seen }.
import http from 'node:http';
import { body, json, options, serve } from './serve.mjs';

const to = Number(options().to);
const agent = new http.Agent({ keepAlive: true });
let rule, hits = 0;
const seen = {};

function pick(name, data) {
  if (!rule || rule.times <= 0 || !new RegExp(rule.match).test(name)) return undefined;
  if (rule.body && !new RegExp(rule.body).test(data.toString('latin1'))) return undefined;
  rule.times--;
  hits++;
  return rule;
}

function forward(req, data) {
  return new Promise((resolve, reject) => {
    const up = http.request({ host: '127.0.0.1', port: to, method: req.method, path: req.url, headers: req.headers, agent }, resolve);
    up.on('error', reject);
    up.end(data);
  });
}

const drain = async (answer) => { for await (const part of answer) void part; };

function say(res, r) {
  if (r.retryAfter !== undefined) res.setHeader('Retry-After', r.retryAfter);
  json(res, r.status ?? 503, { code: r.status ?? 503, message: 'a fault, on purpose' });
}

async function cut(answer, res, bytes) {
  res.writeHead(answer.statusCode, answer.headers);
  res.flushHeaders();
  let left = bytes ?? 0;
  answer.on('error', () => {});
  for await (const part of answer) {
    if (part.length > left) {
      res.write(part.subarray(0, left), () => setTimeout(() => res.destroy(), 20));
      answer.destroy();
      return;
    }
    left -= part.length;
    res.write(part);
  }
  res.destroy();
}

async function wrongLength(answer, res) {
  const all = await body(answer);
  const headers = { ...answer.headers };
  delete headers['transfer-encoding'];
  delete headers['content-length'];
  if (/connect\+json/.test(headers['content-type'])) {
    all.writeUInt32BE(0x7fffffff, 1);
    res.writeHead(answer.statusCode, headers);
    return res.end(all);
  }
  res.writeHead(answer.statusCode, { ...headers, 'Content-Length': all.length + 100 });
  res.write(all, () => setTimeout(() => res.destroy(), 20));
}

function endless(answer, res) {
  answer.resume();
  res.writeHead(200, { 'Content-Type': answer.headers['content-type'] ?? 'application/json' });
  const block = Buffer.alloc(65536, 0x20);
  const more = () => { while (!res.destroyed && res.write(block)); };
  res.on('drain', more);
  more();
}

async function broken(r, req, res, data) {
  if (r.mode === 'status') return say(res, r);
  if (r.mode === 'drop') return res.destroy();
  if (r.mode === 'hang') return undefined;
  if (r.mode === 'slow') await new Promise((go) => setTimeout(go, r.delay ?? 1000));
  const answer = await forward(req, data);
  switch (r.mode) {
    case 'status-after':
      await drain(answer);
      return say(res, r);
    case 'drop-after':
      await drain(answer);
      return res.destroy();
    case 'cut':
      return cut(answer, res, r.bytes);
    case 'json':
      await drain(answer);
      res.writeHead(answer.statusCode, { 'Content-Type': answer.headers['content-type'] ?? 'application/json' });
      return res.end('{"this is": not json');
    case 'length':
      return wrongLength(answer, res);
    case 'endless':
      return endless(answer, res);
    default:
      return pass(answer, res);
  }
}

function pass(answer, res) {
  res.writeHead(answer.statusCode, answer.headers);
  res.flushHeaders(); // a stream's first byte may be long in coming
  answer.on('error', () => res.destroy());
  res.on('close', () => answer.destroy());
  answer.pipe(res);
}

async function handle(req, res) {
  if (req.url === '/_fault') {
    if (req.method === 'POST') {
      rule = { times: 1, ...JSON.parse(await body(req)) };
      hits = 0;
      for (const k of Object.keys(seen)) delete seen[k];
    }
    return json(res, 200, { hits, seen });
  }
  const name = `${req.method} ${req.url.replace(/\?.*/, '')}`;
  const plain = name.replace(/\b[a-z]+_?[0-9a-f]{18,}\b/g, 'ID');
  seen[plain] = (seen[plain] ?? 0) + 1;
  const data = await body(req);
  const r = pick(name, data);
  return r ? broken(r, req, res, data) : pass(await forward(req, data), res);
}

serve(handle, async () => agent.destroy());
