// sdk_dagger.mjs: the vendor's own, unmodified SDK against the double: what it accepts is what makes
// the double worth testing against. TAP; needs @dagger.io/dagger in $CSN_TEST_SDK (tools/sdk).
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const sdk = path.resolve(process.env.CSN_TEST_SDK ?? '.', 'node_modules/@dagger.io/dagger');
if (!fs.existsSync(sdk)) {
  const strict = process.env.CSN_MUST_WORK === '1' && process.getuid() === 0;
  console.log(strict ? '1..1\nnot ok 1 - the Dagger SDK is not installed: tools/sdk DIR' : '1..0 # SKIP the Dagger SDK is not installed: tools/sdk DIR');
  process.exit(strict ? 1 : 0);
}
const here = path.dirname(fileURLToPath(import.meta.url));
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sdk-'));

async function start(...args) {
  const double = spawn(process.execPath, [path.join(here, 'dagger.mjs'), '--token', 'tok', ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const port = await new Promise((go) => double.stdout.once('data', (d) => go(Number(/port (\d+)/.exec(d)[1]))));
  return { double, port };
}

const { double, port } = await start();
Object.assign(process.env, { DAGGER_SESSION_PORT: String(port), DAGGER_SESSION_TOKEN: 'tok', DO_NOT_TRACK: '1' });
const { dag, connection, ExecError, GraphQLRequestError, ReturnType, ExistsType } = await import(pathToFileURL(path.join(sdk, 'dist/src/index.js')).href);
const sh = (c, text, opts) => c.withExec(['sh', '-c', text], opts);
const base = () => dag.container().from('alpine:3.20').withWorkdir('/work');

const tests = [];
const test = (name, fn) => tests.push([name, fn]);

test('version, and a chain with one leaf', async () => {
  assert.match(await dag.version(), /^v0\./);
  assert.equal(await sh(base(), 'printf "%s" "$PWD"').stdout(), '/work');
});
test('exit code, stdout and stderr of one command that runs once', async () => {
  const c = sh(base(), 'printf out; printf err >&2; date +%s%N >>times; exit 3', { expect: ReturnType.Any });
  assert.deepEqual([await c.exitCode(), await c.stdout(), await c.stderr()], [3, 'out', 'err']);
  assert.equal((await c.file('times').contents()).trim().split('\n').length, 1);
});
test('a failure is an ExecError with everything in it', async () => {
  const failing = sh(base(), 'echo out; echo err >&2; exit 7').sync();
  await assert.rejects(failing, (e) => e instanceof ExecError && e.exitCode === 7 && e.stdout === 'out' && e.stderr === 'err');
});
test('an end by a signal is a failure even where any code is expected', async () => {
  const killed = sh(base(), 'kill -9 $$', { expect: ReturnType.Any });
  await assert.rejects(killed.exitCode(), (e) => e instanceof ExecError && e.exitCode === 137);
});
test('no command, a missing file, an image that is not there', async () => {
  await assert.rejects(base().stdout(), GraphQLRequestError);
  await assert.rejects(base().file('nope').contents(), (e) => /no such file or directory/.test(e.message));
  await assert.rejects(dag.container().from('no-such-image').sync(), GraphQLRequestError);
});
test('sync gives a state to go on from, and nothing of a process survives', async () => {
  const one = await sh(base(), 'echo 1 >n; sleep 60 & export LOST=yes').sync();
  const two = await sh(one, 'cat n; echo "${LOST-none}"').sync();
  assert.equal(await two.stdout(), '1\nnone\n');
});
test('branches do not see each other; going back is free', async () => {
  const start = await sh(base(), 'echo common >a').sync();
  const left = await sh(start, 'echo left >b').sync();
  const right = await sh(start, 'echo right >b').sync();
  assert.deepEqual([await left.file('b').contents(), await right.file('b').contents()], ['left\n', 'right\n']);
  assert.equal(await start.exists('b'), false);
  assert.equal(await sh(right, 'cat a b').stdout(), 'common\nright\n');
});
test('variables are set, read and taken away', async () => {
  const c = base().withEnvVariable('A', 'a "b" \\ é');
  assert.equal(await sh(c, 'printf "%s" "$A"').stdout(), 'a "b" \\ é');
  assert.equal(await c.envVariable('A'), 'a "b" \\ é');
  assert.equal(await sh(c.withoutEnvVariable('A'), 'printf "%s" "${A-none}"').stdout(), 'none');
});
test('stdin', async () => {
  assert.equal(await base().withExec(['cat'], { stdin: 'typed\n' }).stdout(), 'typed\n');
});
test('files: write, read, size, list, test, delete', async () => {
  const c = base().withNewFile('d/f', 'héllo\n', { permissions: 0o600 }).withNewFile('g', 'x');
  assert.equal(await c.file('d/f').contents(), 'héllo\n');
  assert.equal(await c.file('d/f').size(), 7);
  assert.deepEqual(await c.directory('.').entries(), ['d/', 'g']);
  assert.equal(await c.exists('d', { expectedType: ExistsType.DirectoryType }), true);
  const less = c.withoutFile('g').withoutDirectory('d');
  assert.deepEqual(await less.directory('.').entries(), []);
  assert.equal(await sh(c, 'stat -c %a d/f').stdout(), '600\n');
});
test('a file of one container in another', async () => {
  const made = sh(base(), 'printf made >f').file('f');
  assert.equal(await base().withFile('here', made).file('here').contents(), 'made');
});
test('from the host and to the host', async () => {
  fs.mkdirSync(path.join(dir, 'in'));
  fs.writeFileSync(path.join(dir, 'in/f'), 'from here');
  const c = base().withDirectory('src', dag.host().directory(path.join(dir, 'in')));
  assert.equal(await sh(c, 'cat src/f').stdout(), 'from here');
  await sh(c, 'echo more >src/g').directory('src').export(path.join(dir, 'out'));
  assert.deepEqual(fs.readdirSync(path.join(dir, 'out')).sort(), ['f', 'g']);
});
test('another token is refused', async () => {
  const r = await fetch(`http://127.0.0.1:${port}/query`, { method: 'POST', body: '{}', headers: { Authorization: `Basic ${Buffer.from('other:').toString('base64')}` } });
  assert.equal(r.status, 401);
});
test('what an engine does not know it refuses before anything runs', async () => {
  const query = '{ container { from(address: "x") { withExec(args: ["touch", "/tmp/x"]) { noSuch } } } }';
  const r = await fetch(`http://127.0.0.1:${port}/query`, { method: 'POST', body: JSON.stringify({ query }), headers: { Authorization: `Basic ${Buffer.from('tok:').toString('base64')}` } });
  assert.equal(r.status, 422);
  assert.match((await r.json()).errors[0].message, /Cannot query field "noSuch" on type "Container"/);
});

console.log(`1..${tests.length}`);
let failed = 0;
await connection(async () => {
  for (const [i, [name, fn]] of tests.entries()) {
    try {
      await fn();
      console.log(`ok ${i + 1} - ${name}`);
    } catch (e) {
      failed++;
      console.log(`not ok ${i + 1} - ${name}\n# ${String(e?.stack ?? e).replaceAll('\n', '\n# ')}`);
    }
  }
});
double.stdin.end();
await new Promise((go) => double.once('exit', go));
fs.rmSync(dir, { recursive: true, force: true });
process.exit(failed ? 1 : 0);
