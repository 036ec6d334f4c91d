// sdk.mjs: the official clients against the server: SDK v1 and the client of v2, over both
// transports, in every era they speak. Speaks TAP.
//
//   node sdk.mjs PACKAGES     the directory whose node_modules holds them
//
// The clients check what they get: each answer against the protocol's schema, each structured
// content against the schema the tool announced.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const packages = process.argv[2];
const find = createRequire(join(packages, 'package.json'));
const load = (name) => import(pathToFileURL(find.resolve(name)));
const caisson = process.env.CAISSON;
const top = mkdtempSync('/tmp/csn-sdk.');
const ws = join(top, 'ws');
const env = { ...process.env, HOME: join(top, 'home'), XDG_STATE_HOME: join(top, 'state'),
  XDG_RUNTIME_DIR: join(top, 'run'), XDG_CONFIG_HOME: join(top, 'config') };
for (const dir of [ws, env.HOME, env.XDG_STATE_HOME, env.XDG_RUNTIME_DIR, env.XDG_CONFIG_HOME])
  mkdirSync(dir, { mode: 0o700 });

writeFileSync(join(top, 'outside'), 'not given');

let n = 0, failed = 0;
function ok(good, name, why) {
  console.log(`${good ? 'ok' : 'not ok'} ${++n} - ${name}`);
  if (!good) {
    failed++;
    console.log('# ' + JSON.stringify(why, null, 1)?.slice(0, 2000).replaceAll('\n', '\n# '));
  }
}
async function fails(promise) {
  try { return { value: await promise }; } catch (e) { return { error: e }; }
}
const text = (r) => r.content.map((c) => c.text ?? '').join('');
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// ---- the server over HTTP ----
const tokenFile = join(top, 'token');
async function startHttp() {
  const child = spawn(caisson, ['mcp', '--workspace', ws, '--http', '127.0.0.1:0',
    '--token-file', tokenFile], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let err = '';
  const url = await new Promise((done, fail) => {
    child.stderr.on('data', (d) => {
      err += d;
      const m = err.match(/http:\S+(?=\s)/);
      if (m) done(m[0]);
    });
    child.on('exit', () => fail(new Error('the server ended: ' + err)));
  });
  return { child, url, said: () => err, token: readFileSync(tokenFile, 'utf8').trim() };
}

// ---- what every client does ----
// `call` hides that v1 and v2 take the options of a request at different places.
async function exercise(label, client, call) {
  const { tools } = await client.listTools();
  ok(tools.length === 10, `${label}: ten tools`, tools.map((t) => t.name));
  const pixel = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
  writeFileSync(join(ws, 'dot.png'), pixel);

  let r = await call('bash', { command: 'echo out; echo err >&2; exit 3' });
  ok(r.structuredContent.exit_code === 3 && r.structuredContent.stdout === 'out\n' && !r.isError,
    `${label}: bash`, r);
  r = await call('write', { file_path: 'a/b.txt', content: 'one\ntwo\n' });
  ok(r.structuredContent.bytes === 8, `${label}: write`, r);
  r = await call('read', { file_path: 'a/b.txt' });
  ok(text(r) === '     1\tone\n     2\ttwo\n', `${label}: read`, r);
  r = await call('read', { file_path: 'dot.png' });
  ok(r.content[0].type === 'image' && r.content[0].data === pixel.toString('base64'),
    `${label}: an image`, r);
  r = await call('edit', { file_path: 'a/b.txt', old_string: 'two', new_string: 'TWO' });
  ok(r.structuredContent.occurrences === 1, `${label}: edit`, r);
  r = await call('ls', { path: 'a' });
  ok(r.structuredContent.entries[0].path === 'b.txt', `${label}: ls`, r);
  r = await call('glob', { pattern: '**/*.txt' });
  ok(r.structuredContent.files.includes('a/b.txt'), `${label}: glob`, r);
  for (const output_mode of ['files_with_matches', 'content', 'count']) {
    r = await call('grep', { pattern: 'T.O', path: 'a', output_mode });
    ok(!r.isError && text(r).includes('b.txt'), `${label}: grep ${output_mode}`, r);
  }
  r = await call('sandbox_info', {});
  ok(r.structuredContent.layers.length > 0, `${label}: sandbox_info`, r);
  r = await call('bash', { command: 'cat', run_in_background: true });
  const pid = r.structuredContent.pid;
  r = await call('process', { action: 'list' });
  ok(r.structuredContent.processes.some((p) => p.pid === pid), `${label}: process list`, r);
  r = await call('process', { action: 'input', pid, input: 'hello\n', close_input: true });
  let out = r.structuredContent.stdout; // what is there already comes with the answer
  for (let i = 0; i < 50 && !out; i++)
    out += (await call('process', { action: 'output', pid, timeout: 1000 })).structuredContent.stdout;
  ok(out === 'hello\n', `${label}: a background process is fed and read`, out);
  r = await call('bash', { command: `cat ${top}/outside` });
  ok(!r.isError && r.structuredContent.exit_code !== 0 && r.structuredContent.denials?.length > 0,
    `${label}: what was refused is told`, r);
  r = await call('read', { file_path: 'nosuch' });
  ok(r.isError && text(r).includes('not found'), `${label}: a failure is isError`, r);
  r = await call('read', { path: 'a/b.txt' });
  ok(r.isError && text(r).includes('file_path'), `${label}: wrong arguments are isError`, r);
  const { error } = await fails(call('nosuch', {}));
  ok(error?.code === -32602, `${label}: an unknown tool is -32602`, { code: error?.code, text: String(error) });
  r = await call('delete', { file_path: 'a', recursive: true });
  ok(r.structuredContent.deleted === true, `${label}: delete`, r);

  // each ends when all of them run: one after the other they would never
  const place = `${ws}/${label.replaceAll(' ', '-')}`;
  mkdirSync(place);
  const many = await Promise.all(Array.from({ length: 20 }, (_, i) => call('bash',
    { command: `touch ${place}/${i}; until [ $(ls ${place} | wc -l) = 20 ]; do sleep 0.1; done; echo ${i}` })));
  ok(many.every((m, i) => m.structuredContent.stdout === `${i}\n`), `${label}: 20 calls overlap`, many);

  const seen = [];
  for (let s = 1.7; seen.length < 1 && s < 40; s *= 3) // the first that is long enough
    r = await call('bash', { command: `sleep ${s}; echo done` }, { onprogress: (p) => seen.push(p.progress) });
  ok(r.structuredContent.stdout === 'done\n' && seen.length >= 1 &&
     seen.every((p, i) => i === 0 || p > seen[i - 1]), `${label}: progress`, seen);

  const abort = new AbortController();
  const stuck = fails(call('bash', { command: `touch ${ws}/begun; sleep 600; touch ${ws}/late` },
    { signal: abort.signal }));
  await sleep(600);
  abort.abort('test');
  ok((await stuck).error !== undefined, `${label}: an aborted call rejects`);
  let gone = false;
  for (let i = 0; i < 600 && !gone; i++) {
    r = await call('bash', { command: "ps -eo args | grep -c '[s]leep 600'" });
    gone = r.structuredContent.stdout.trim() === '0';
    if (!gone) await sleep(100);
  }
  ok(gone, `${label}: and its command is gone`, r.structuredContent);
}

// ---- the clients ----
const v1 = { ...(await load('@modelcontextprotocol/sdk/client/index.js')),
  ...(await load('@modelcontextprotocol/sdk/client/stdio.js')),
  ...(await load('@modelcontextprotocol/sdk/client/streamableHttp.js')) };
const v2 = { ...(await load('@modelcontextprotocol/client')),
  ...(await load('@modelcontextprotocol/client/stdio')) };
const me = { name: 'caisson-test', version: '1' };
const http = await startHttp();

async function run(label, sdk, transport, options) {
  const client = new sdk.Client(me, options);
  await client.connect(transport);
  const call = (name, args, o) => sdk === v1
    ? client.callTool({ name, arguments: args }, undefined, o)
    : client.callTool({ name, arguments: args }, o);
  ok(client.getServerVersion()?.name === 'caisson', `${label}: connected`, client.getServerVersion());
  if (client.getNegotiatedProtocolVersion)
    console.log(`# ${label}: revision ${client.getNegotiatedProtocolVersion()}`);
  await exercise(label, client, call);
  await client.close();
}
const overStdio = (sdk) => new sdk.StdioClientTransport(
  { command: caisson, args: ['mcp', '--workspace', ws], env, stderr: 'inherit' });
const overHttp = (sdk, token = http.token) => new sdk.StreamableHTTPClientTransport(
  new URL(http.url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });

try {
  await run('v1 stdio', v1, overStdio(v1));
  await run('v1 http', v1, overHttp(v1));
  await run('v2 stdio', v2, overStdio(v2));
  await run('v2 http', v2, overHttp(v2));
  const auto = { versionNegotiation: { mode: 'auto' } };
  await run('v2 auto stdio', v2, overStdio(v2), auto);
  await run('v2 auto http', v2, overHttp(v2), auto);
  const pin = { versionNegotiation: { mode: { pin: '2026-07-28' } } };
  await run('v2 2026-07-28 stdio', v2, overStdio(v2), pin);
  await run('v2 2026-07-28 http', v2, overHttp(v2), pin);
  const { error } = await fails(new v1.Client(me).connect(overHttp(v1, 'not-the-token-at-all')));
  ok(error !== undefined, 'a wrong token does not connect', String(error));
} catch (e) {
  ok(false, 'no exception', { text: String(e), stack: e.stack });
}
http.child.removeAllListeners('exit');
const ended = new Promise((done) => http.child.on('exit', done));
http.child.kill('SIGTERM');
const status = await ended;
ok(status === 0, 'the server over HTTP ends in order', { status, said: http.said() });
rmSync(top, { recursive: true, force: true });
console.log(`1..${n}`);
process.exit(failed ? 1 : 0);
