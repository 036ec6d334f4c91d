// sdk_vercel.mjs: the vendor's own, unmodified SDK against the double: what it accepts is what makes
// the double worth testing against. TAP; needs the package @vercel/sandbox in $CSN_TEST_SDK (tools/sdk).
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';

const sdk = process.env.CSN_TEST_SDK ?? '.';
if (!fs.existsSync(path.join(sdk, 'node_modules/@vercel/sandbox'))) {
  const strict = process.env.CSN_MUST_WORK === '1' && process.getuid() === 0;
  console.log(strict ? '1..1\nnot ok 1 - the Vercel SDK is not installed: tools/sdk DIR' : '1..0 # SKIP the Vercel SDK is not installed: tools/sdk DIR');
  process.exit(strict ? 1 : 0);
}
const here = path.dirname(fileURLToPath(import.meta.url));
const double = spawn(process.execPath, [path.join(here, 'vercel.mjs')], { stdio: ['pipe', 'pipe', 'inherit'] });
const port = await new Promise((go) => double.stdout.once('data', (d) => go(Number(/port (\d+)/.exec(d)[1]))));
const { Sandbox, Snapshot, APIError } = createRequire(path.join(path.resolve(sdk), 'package.json'))('@vercel/sandbox');
// The SDK has no option for its base URL; what it sends otherwise is left as it is.
const toDouble = (url, init) => fetch(String(url).replace('https://vercel.com/', `http://127.0.0.1:${port}/`), init);
const who = { token: 'token', teamId: 'team_x', projectId: 'prj_x', fetch: toDouble };

const tests = [];
const test = (name, fn) => tests.push([name, fn]);
let sb;

test('create', async () => {
  sb = await Sandbox.create({ ...who, name: 'my sandbox', runtime: 'python3.13', timeout: 60000, persistent: true, env: { FROM_CREATE: 'yes' }, tags: { purpose: 'test' } });
  assert.deepEqual([sb.name, sb.status, sb.runtime, sb.timeout], ['my sandbox', 'running', 'python3.13', 60000]);
});
test('a command, its streams and its variables', async () => {
  const r = await sb.runCommand({ cmd: 'sh', args: ['-c', 'printf "%s %s" "$FROM_CREATE" "$MORE"; printf no >&2; exit 3'], env: { MORE: 'more' } });
  assert.deepEqual([r.exitCode, await r.stdout(), await r.stderr()], [3, 'yes more', 'no']);
});
test('live output, in UTF-8 that is cut anywhere', async () => {
  let live = '';
  const stdout = new Writable({ write: (d, _, done) => ((live += d), done()) });
  const r = await sb.runCommand({ cmd: 'sh', args: ['-c', 'for i in 1 2 3; do printf "h\\303"; sleep 0.05; printf "\\251llo\\n"; done'], stdout });
  assert.equal(await r.stdout(), 'héllo\n'.repeat(3));
  assert.equal(live, 'héllo\n'.repeat(3));
});
test('sudo, and a directory', async () => {
  const r = await sb.runCommand({ cmd: 'pwd', cwd: '/tmp', sudo: true });
  assert.equal(await r.stdout(), '/tmp\n');
  await assert.rejects(sb.runCommand({ cmd: 'true', cwd: '/no/such' }), (e) => e instanceof APIError && e.response.status === 400);
});
test('a timeout ends it', async () => {
  const r = await sb.runCommand('sleep', ['60'], { timeoutMs: 300 });
  assert.equal(r.exitCode, 137);
});
test('detached: logs from the start, wait, a second look', async () => {
  const c = await sb.runCommand({ cmd: 'sh', args: ['-c', 'echo one; sleep 0.1; echo two >&2; exit 4'], detached: true });
  assert.equal(c.exitCode, null);
  const seen = [];
  for await (const l of c.logs()) seen.push(`${l.stream}:${l.data}`);
  assert.deepEqual(seen, ['stdout:one\n', 'stderr:two\n']);
  assert.equal((await c.wait()).exitCode, 4);
  const again = await sb.getCommand(c.cmdId);
  assert.deepEqual([again.exitCode, await again.stdout()], [4, 'one\n']);
});
test('kill', async () => {
  const c = await sb.runCommand({ cmd: 'sleep', args: ['60'], detached: true });
  await c.kill('SIGKILL');
  assert.notEqual((await c.wait()).exitCode, 0);
  await assert.rejects(sb.getCommand('cmd_none'), APIError);
});
test('files: text, bytes, modes and long names', async () => {
  const bytes = Buffer.from([0, 255, 10, 13, 128]);
  const long = `d/${'x'.repeat(90)}/${'y'.repeat(90)}/ünï.txt`;
  await sb.writeFiles([{ path: 'dir/bin', content: bytes }, { path: 't.txt', content: Buffer.from('héllo') }, { path: long, content: Buffer.from('far') }, { path: '/tmp/run', content: Buffer.from('#!/bin/sh\necho ran\n'), mode: 0o755 }]);
  assert.deepEqual(await sb.readFileToBuffer({ path: 'dir/bin' }), bytes);
  assert.equal((await sb.readFileToBuffer({ path: 't.txt' })).toString(), 'héllo');
  assert.equal((await sb.readFileToBuffer({ path: long })).toString(), 'far');
  assert.equal(await (await sb.runCommand('/tmp/run')).stdout(), 'ran\n');
  assert.equal(await sb.readFileToBuffer({ path: 'missing' }), null);
  await assert.rejects(sb.readFileToBuffer({ path: 'dir' }), APIError);
});
test('files: directories, and what the SDK makes of commands', async () => {
  await sb.mkDir('made/deep');
  await assert.rejects(sb.mkDir('made/deep'), APIError);
  await sb.fs.writeFile('made/f', 'content');
  assert.deepEqual((await sb.fs.readdir('made')).sort(), ['deep', 'f']);
  assert.equal((await sb.fs.stat('made/f')).size, 7);
  await sb.fs.rename('made/f', 'made/g');
  assert.equal(await sb.fs.readFile('made/g', 'utf8'), 'content');
  await assert.rejects(sb.fs.stat('made/f'), (e) => e.code === 'ENOENT');
  await sb.fs.rm('made', { recursive: true });
  assert.equal(await sb.fs.exists('made'), false);
});
test('list, get, update, extend', async () => {
  const found = await Sandbox.list({ ...who, namePrefix: 'my ' });
  assert.deepEqual(found.sandboxes.map((s) => s.name), ['my sandbox']);
  assert.equal((await Sandbox.list({ ...who, tags: { purpose: 'else' } })).sandboxes.length, 0);
  await sb.extendTimeout(30000);
  assert.equal(sb.currentSession().timeout, 90000);
  const again = await Sandbox.get({ ...who, name: 'my sandbox' });
  assert.equal((await again.runCommand('cat', ['t.txt'])).exitCode, 0);
  await assert.rejects(Sandbox.get({ ...who, name: 'nobody' }), (e) => e instanceof APIError && e.response.status === 404);
});
test('a network policy', async () => {
  await sb.update({ networkPolicy: { allow: ['example.com'], subnets: { deny: ['10.0.0.0/8'] } } });
  assert.deepEqual(sb.currentSession().networkPolicy, { allow: ['example.com'], subnets: { deny: ['10.0.0.0/8'] } });
  const none = await Sandbox.create({ ...who, networkPolicy: 'deny-all', persistent: false });
  assert.equal(none.networkPolicy, 'deny-all');
  await none.delete();
});
test('stop, and resume by using it', async () => {
  const before = sb.currentSession().sessionId;
  await sb.stop();
  const r = await sb.runCommand('cat', ['t.txt']);
  assert.equal(await r.stdout(), 'héllo');
  assert.notEqual(sb.currentSession().sessionId, before);
});
test('a snapshot, and a sandbox made of it', async () => {
  const shot = await sb.snapshot();
  const copy = await Sandbox.create({ ...who, source: { type: 'snapshot', snapshotId: shot.snapshotId } });
  assert.equal((await copy.readFileToBuffer({ path: 't.txt' })).toString(), 'héllo');
  await copy.delete();
  await (await Snapshot.get({ ...who, snapshotId: shot.snapshotId })).delete();
});
test('delete, and what is refused then', async () => {
  await sb.delete();
  await assert.rejects(Sandbox.get({ ...who, name: 'my sandbox' }), APIError);
  await assert.rejects(Sandbox.create({ ...who, token: '' }));
});

console.log(`1..${tests.length}`);
let failed = 0;
for (const [i, [name, fn]] of tests.entries()) {
  try {
    await fn();
    console.log(`ok ${i + 1} - ${name}`);
  } catch (e) {
    failed++;
    console.log(`not ok ${i + 1} - ${name}\n# ${String(e?.stack ?? e).replaceAll('\n', '\n# ')}`);
  }
}
double.stdin.end();
await new Promise((go) => double.once('exit', go));
process.exit(failed ? 1 : 0);
