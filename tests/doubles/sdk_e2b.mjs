// sdk_e2b.mjs: the vendor's own, unmodified SDK against the double: what it accepts is what makes
// the double worth testing against. TAP; needs the package e2b in $CSN_TEST_SDK (tools/npm-packages).
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const sdk = process.env.CSN_TEST_SDK ?? '.';
if (!fs.existsSync(path.join(sdk, 'node_modules/e2b'))) {
  const strict = process.env.CSN_MUST_WORK === '1' && process.getuid() === 0;
  console.log(strict ? '1..1\nnot ok 1 - the e2b SDK is not installed (tools/npm-packages)' : '1..0 # SKIP the e2b SDK is not installed (tools/npm-packages)');
  process.exit(strict ? 1 : 0);
}
const here = path.dirname(fileURLToPath(import.meta.url));
const double = spawn(process.execPath, [path.join(here, 'e2b.mjs')], { stdio: ['pipe', 'pipe', 'inherit'] });
const port = await new Promise((go) => double.stdout.once('data', (d) => go(Number(/port (\d+)/.exec(d)[1]))));
Object.assign(process.env, { E2B_API_URL: `http://127.0.0.1:${port}`, E2B_SANDBOX_URL: `http://127.0.0.1:${port}`, E2B_API_KEY: 'k' });
const e2b = createRequire(path.join(path.resolve(sdk), 'package.json'))('e2b');
const { Sandbox } = e2b;

const tests = [];
const test = (name, fn) => tests.push([name, fn]);
let sb;

test('create', async () => {
  sb = await Sandbox.create({ timeoutMs: 60000, metadata: { purpose: 'a b' }, envs: { FROM_CREATE: 'yes' } });
  assert.match(sb.sandboxId, /^i[0-9a-f]+$/);
  assert.equal(await sb.isRunning(), true);
});
test('a command, its streams and its variables', async () => {
  const r = await sb.commands.run('printf "%s %s" "$FROM_CREATE" "$MORE"; printf no >&2', { envs: { MORE: 'more' } });
  assert.deepEqual([r.stdout, r.stderr, r.exitCode], ['yes more', 'no', 0]);
});
test('live output, in UTF-8 that is cut anywhere', async () => {
  let live = '';
  const r = await sb.commands.run('for i in 1 2 3; do printf "h\\303"; sleep 0.05; printf "\\251llo\\n"; done', { onStdout: (d) => (live += d) });
  assert.equal(r.stdout, 'héllo\n'.repeat(3));
  assert.equal(live, r.stdout);
});
test('a failure is a CommandExitError with everything in it', async () => {
  await assert.rejects(sb.commands.run('echo out; echo err >&2; exit 3'), (e) => e instanceof e2b.CommandExitError && e.exitCode === 3 && e.stdout === 'out\n' && e.stderr === 'err\n');
});
test('a timeout ends it', async () => {
  await assert.rejects(sb.commands.run('sleep 30', { timeoutMs: 300 }), e2b.TimeoutError);
});
test('in the background: stdin, list, wait', async () => {
  const h = await sb.commands.run('cat; exit 4', { background: true, stdin: true });
  assert.ok((await sb.commands.list()).some((p) => p.pid === h.pid));
  await sb.commands.sendStdin(h.pid, 'typed');
  await sb.commands.closeStdin?.(h.pid);
  await assert.rejects(h.wait(), (e) => e.exitCode === 4 && e.stdout === 'typed');
});
test('connect to a running process, kill it', async () => {
  const h = await sb.commands.run('echo begun; sleep 60', { background: true });
  const again = await sb.commands.connect(h.pid);
  assert.equal(again.pid, h.pid);
  assert.equal(await sb.commands.kill(h.pid), true);
  assert.equal(await sb.commands.kill(999999), false);
  await assert.rejects(again.wait());
});
test('a missing working directory is an InvalidArgumentError', async () => {
  await assert.rejects(sb.commands.run('true', { cwd: '/no/such' }), e2b.InvalidArgumentError);
});
test('files: write and read, text and bytes', async () => {
  const bytes = new Uint8Array([0, 255, 10, 13, 128]);
  await sb.files.write('dir/bin', bytes.buffer);
  assert.deepEqual(await sb.files.read('dir/bin', { format: 'bytes' }), bytes);
  assert.equal((await sb.files.write('t.txt', 'héllo')).name, 't.txt');
  assert.equal(await sb.files.read('t.txt'), 'héllo');
  await assert.rejects(sb.files.read('missing'), e2b.FileNotFoundError ?? e2b.NotFoundError);
});
test('files: many at once, and as a plain body', async () => {
  const done = await sb.files.write([{ path: 'm/a', data: 'A' }, { path: 'm/b c', data: 'B' }]);
  assert.deepEqual(done.map((d) => d.name), ['a', 'b c']);
  assert.equal(await sb.files.read('m/b c'), 'B');
  await sb.files.write('m/plain', 'octets', { useOctetStream: true });
  assert.equal(await sb.files.read('m/plain'), 'octets');
  await sb.files.write('m/zipped', 'z'.repeat(5000), { gzip: true });
  assert.equal((await sb.files.read('m/zipped')).length, 5000);
});
test('files: list, stat, mkdir, rename, remove', async () => {
  assert.equal(await sb.files.makeDir('new/deep'), true);
  assert.equal(await sb.files.makeDir('new/deep'), false);
  assert.equal(await sb.files.exists('new/deep'), true);
  assert.equal(await sb.files.exists('nothing'), false);
  const info = await sb.files.getInfo('t.txt');
  assert.deepEqual([info.name, info.type, info.size], ['t.txt', 'file', 6]);
  assert.equal((await sb.files.rename('t.txt', 'new/u.txt')).name, 'u.txt');
  const names = (await sb.files.list('new')).map((e) => `${e.name}:${e.type}`).sort();
  assert.deepEqual(names, ['deep:dir', 'u.txt:file']);
  await sb.files.remove('new');
  assert.equal(await sb.files.exists('new'), false);
});
test('files: watch', async () => {
  const events = [];
  const w = await sb.files.watchDir('m', (e) => events.push(`${e.type} ${e.name}`));
  await sb.files.write('m/seen', 'x');
  for (let i = 0; i < 200 && !events.some((e) => e.endsWith('seen')); i++) await new Promise((go) => setTimeout(go, 50));
  await w.stop();
  assert.ok(events.some((e) => e.endsWith('seen')), String(events));
});
test('list, info, timeout, connect', async () => {
  const page = Sandbox.list({ query: { metadata: { purpose: 'a b' } } });
  assert.deepEqual((await page.nextItems()).map((s) => s.sandboxId), [sb.sandboxId]);
  const none = Sandbox.list({ query: { metadata: { purpose: 'else' } } });
  assert.equal((await none.nextItems()).length, 0);
  await sb.setTimeout(90500);
  const info = await sb.getInfo();
  const left = info.endAt.getTime() - Date.now();
  assert.ok(left > 60000 && left <= 92000, String(left));
  const again = await Sandbox.connect(sb.sandboxId);
  assert.equal((await again.commands.run('cat m/a')).stdout, 'A');
});
test('pause, and resume by connecting', async () => {
  await sb.pause();
  assert.equal(await sb.isRunning(), false);
  sb = await Sandbox.connect(sb.sandboxId);
  assert.equal((await sb.commands.run('echo back')).stdout, 'back\n');
});
test('kill, twice', async () => {
  assert.equal(await sb.kill(), true);
  assert.equal(await Sandbox.kill(sb.sandboxId), false);
  assert.equal(await sb.isRunning(), false);
  await assert.rejects(Sandbox.connect(sb.sandboxId), e2b.SandboxNotFoundError ?? e2b.NotFoundError);
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
