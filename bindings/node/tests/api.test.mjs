// api.test.mjs: what the package adds to the verbs: streams, signals, handles, errors.
import assert from 'node:assert/strict';
import { spawn, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import * as caisson from 'caisson';
import { workspace } from './support.mjs';

const { open, CaissonError } = caisson;
const require = createRequire(import.meta.url);

/** A sandbox on an empty workspace, closed after the test. */
async function sandbox(t, options = {}) {
  const dir = workspace(t);
  const sb = await open({ backend: 'jail', workspace: dir, ...options });
  t.after(() => sb.close());
  return Object.assign(sb, { dir });
}

const until = async (condition) => {
  while (!(await condition())) await new Promise((wake) => setTimeout(wake, 10));
};

// ---- modules and errors ----

test('require and import give the same classes', () => {
  assert.equal(require('caisson').Sandbox, caisson.Sandbox);
  assert.equal(caisson.default.open, caisson.open);
  assert.match(caisson.version(), /^\d+\.\d+\.\d+$/);
});

test('an error has code, op, path and a stack with the caller', async (t) => {
  const sb = await sandbox(t);
  const error = await sb.read('none').catch((e) => e);
  assert.ok(error instanceof CaissonError);
  assert.equal(error.message, "File 'none' not found");
  assert.equal(error.code, 'not_found');
  assert.equal(error.op, 'read');
  assert.equal(error.path, 'none');
  assert.match(error.stack, /api\.test\.mjs/);
  assert.equal(caisson.STATUSES.not_found.http, 404);
});

test('a denial has a rule and a hint', async (t) => {
  const dir = workspace(t);
  fs.writeFileSync(path.join(dir, 'secret'), 's');
  const sb = await open({ backend: 'jail', workspace: dir, deny: ['secret'] });
  t.after(() => sb.close());
  const { denial } = await sb.read('secret').catch((e) => e);
  assert.equal(denial.op, 'read');
  assert.equal(denial.target, 'secret');
  assert.equal(denial.source, 'config.deny[0]');
});

test('wrong arguments are refused by name', async (t) => {
  const sb = await sandbox(t);
  await assert.rejects(sb.exec('true'), { code: 'invalid', message: 'argv: must be an array of strings' });
  await assert.rejects(sb.exec(['true'], { timeoutMs: -1 }), { code: 'invalid', message: /timeoutMs/ });
  await assert.rejects(sb.exec(['true'], { timeout: 1 }), { code: 'invalid', message: "exec: unknown option 'timeout'", hint: /timeoutMs/ });
  await assert.rejects(sb.read('a\0b'), { code: 'invalid', message: /NUL/ });
  await assert.rejects(sb.exec(['true'], { keep: 'all' }), { code: 'invalid', message: /keep: 'all'/ });
  await assert.rejects(open({ backend: 'jail', wrokspace: '/x' }), { code: 'invalid', message: /wrokspace/ });
  await assert.rejects(open({ limits: { memroy: 1 } }), { code: 'invalid', message: /memroy/ });
  await assert.rejects(sb.wouldAllow('fly', 'x'), { code: 'invalid', message: /'fly'/ });
});

// ---- commands ----

test('bytes that are not UTF-8 survive', async (t) => {
  const sb = await sandbox(t);
  const result = await sb.sh("printf '\\377a\\0b'");
  assert.equal(result.stdout, '\ufffda\0b');
  assert.deepEqual([...result.stdoutBytes], [255, 97, 0, 98]);
  assert.deepEqual([...(await sb.sh('printf é')).stdoutBytes], [0xc3, 0xa9]);
});

test('onOutput gets chunks in order, and can end the command', async (t) => {
  const sb = await sandbox(t);
  const seen = [];
  await sb.sh('echo a; sleep 0.1; echo b >&2; sleep 0.1; echo c', { onOutput: (stream, data) => { seen.push(`${stream} ${data}`); } });
  assert.deepEqual(seen, ['stdout a\n', 'stderr b\n', 'stdout c\n']);
  const stopped = await sb.sh('echo a; sleep 600', { onOutput: () => false });
  assert.equal(stopped.killedBy, 'cancel');
  await assert.rejects(sb.sh('echo a; sleep 600', { onOutput: () => { throw new Error('mine'); } }), { message: 'mine' });
});

test('a stream iterates over output and holds the command back', async (t) => {
  const sb = await sandbox(t);
  const stream = sb.stream('i=0; while [ $i -lt 64 ]; do head -c 65536 /dev/zero; i=$((i+1)); echo $i >count; done');
  let bytes = 0;
  for await (const { data } of stream) {
    if (bytes === 0) {
      await new Promise((wake) => setTimeout(wake, 300));
      assert.ok(Number((await sb.readBytes('count').catch(() => '0')).toString()) < 32, 'the command waits');
    }
    bytes += data.length;
  }
  assert.equal(bytes, 64 * 65536);
  assert.equal((await stream.result()).exitCode, 0);
});

test('text of a stream does not split characters', async (t) => {
  const sb = await sandbox(t);
  let text = '';
  for await (const chunk of sb.stream("printf '\\303'; sleep 0.2; printf '\\251'")) text += chunk.text;
  assert.equal(text, 'é');
});

test('leaving the loop ends the command', async (t) => {
  const sb = await sandbox(t);
  for await (const { text } of sb.stream('echo $$; exec sleep 600')) {
    assert.match(text, /\d/);
    break;
  }
  assert.doesNotMatch((await sb.sh('ps ax || cat /proc/[0-9]*/cmdline')).stdout, /sleep/);
});

test('an AbortSignal ends a command with its processes', async (t) => {
  const sb = await sandbox(t);
  const controller = new AbortController();
  const running = sb.sh('echo begun; touch begun; sleep 600', { signal: controller.signal });
  await until(() => fs.existsSync(path.join(sb.dir, 'begun')));
  controller.abort(new Error('enough'));
  const error = await running.catch((e) => e);
  assert.equal(error.name, 'AbortError');
  assert.equal(error.code, 'cancelled');
  assert.equal(error.cause.message, 'enough');
  assert.equal(error.result.stdout, 'begun\n');
  await assert.rejects(sb.exec(['true'], { signal: AbortSignal.abort() }), { name: 'AbortError' });
});

test('a call with a signal leaves no descriptor', async (t) => {
  const sb = await sandbox(t);
  const { signal } = new AbortController();
  const descriptors = () => fs.readdirSync('/proc/self/fd').length;
  await sb.write('f', 'x');
  await sb.read('f', { signal });
  const before = descriptors();
  for (let i = 0; i < 100; i++) await sb.read('f', { signal });
  assert.equal(descriptors(), before);
});

test('open and close leave no descriptor', async (t) => {
  const dir = workspace(t);
  const descriptors = () => fs.readdirSync('/proc/self/fd').length;
  await (await open({ backend: 'local', workspace: dir })).close();
  const before = descriptors();
  for (let i = 0; i < 20; i++) await (await open({ backend: 'local', workspace: dir })).close();
  assert.equal(descriptors(), before);
});

test('waits end by their signal', async (t) => {
  const sb = await sandbox(t);
  const process = await sb.start(['sleep', '600']);
  for (const wait of [
    (signal) => process.wait({ signal }),
    (signal) => process.logs({ waitMs: Infinity, signal }),
    (signal) => sb.waitPort(1, { timeoutMs: Infinity, signal }),
    (signal) => sb.waitLog('never', { timeoutMs: Infinity, signal }),
    async (signal) => (await sb.watch('.', { signal })).next(),
  ]) await assert.rejects(wait(AbortSignal.timeout(50)), { name: 'AbortError' });
});

test('stdin: text, bytes, descriptor', async (t) => {
  const sb = await sandbox(t);
  assert.equal((await sb.exec(['cat'], { stdin: 'text' })).stdout, 'text');
  assert.deepEqual([...(await sb.exec(['cat'], { stdin: Buffer.from([0, 255]) })).stdoutBytes], [0, 255]);
  fs.writeFileSync(path.join(sb.dir, 'f'), 'from a file');
  const fd = fs.openSync(path.join(sb.dir, 'f'));
  assert.equal((await sb.exec(['cat'], { stdin: fd })).stdout, 'from a file');
  fs.closeSync(fd);
});

test('200 commands at once', async (t) => {
  const sb = await sandbox(t);
  const all = await Promise.all(Array.from({ length: 200 }, (_, i) => sb.sh(`echo ${i}`)));
  assert.deepEqual(all.map((r) => r.stdout), Array.from({ length: 200 }, (_, i) => `${i}\n`));
});

test('the event loop runs while a command does', async (t) => {
  const sb = await sandbox(t);
  const waiting = sb.sh('until [ -e go ]; do sleep 0.01; done', { timeoutMs: 60000 });
  setTimeout(() => fs.writeFileSync(path.join(sb.dir, 'go'), ''), 20);
  assert.equal((await waiting).exitCode, 0);
});

test('a denied host is told while the command runs', async (t) => {
  const sb = await sandbox(t, { network: { allow: ['example.org'] } });
  const seen = [];
  await sb.exec(['python3', '-c', "import socket\ntry: socket.getaddrinfo('other.example', 80)\nexcept OSError: pass"], { onDenial: (d) => { seen.push(d.target); } });
  assert.ok(seen.some((target) => target.includes('other.example')), String(seen));
});

// ---- processes ----

test('a background process: input, output, signal, terminal size', async (t) => {
  const sb = await sandbox(t);
  const cat = await sb.start(['cat'], { stdin: true });
  assert.equal((await sb.processes()).length, 1);
  await cat.write('one\n');
  await cat.write(Buffer.from('two\n'));
  await cat.closeStdin();
  const chunks = [];
  for await (const data of cat.stream()) chunks.push(data);
  assert.equal(Buffer.concat(chunks).toString(), 'one\ntwo\n');
  assert.equal((await cat.wait()).exitCode, 0);

  const sleep = await sb.start(['sleep', '600']);
  const same = await sb.process(sleep.pid);
  await assert.rejects(sleep.wait({ timeoutMs: 50 }), { code: 'timeout' });
  await same.signal('SIGKILL');
  assert.equal((await sleep.wait()).signal, 'SIGKILL');
  await assert.rejects(sleep.signal('SIGNONE'), { code: 'invalid', message: /SIGNONE/ });

  const terminal = await sb.startSh('read x; stty size', { pty: true, rows: 10, cols: 20, stdin: true });
  await terminal.resize(30, 40);
  await terminal.write('\n');
  await terminal.wait();
  assert.match((await terminal.logs()).data.toString(), /30 40/);
  terminal.release();
  await assert.rejects(terminal.logs(), { code: 'gone' });
});

test('a process that is tied ends with its handle', async (t) => {
  const sb = await sandbox(t);
  const process = await sb.start(['sleep', '600'], { tied: true });
  const other = await sb.process(process.pid);
  process[Symbol.dispose]();
  assert.notEqual((await other.wait({ timeoutMs: 60000 })).state, 'running');
});

test('wait_port finds a listener', async (t) => {
  const sb = await sandbox(t);
  await sb.start(['python3', '-m', 'http.server', '8765']);
  await sb.waitPort(8765, { timeoutMs: 60000 });
});

// ---- files ----

test('paths that are not UTF-8 are given and returned as bytes', async (t) => {
  const sb = await sandbox(t);
  const name = Buffer.from([0x66, 0xff, 0x67]);
  await sb.write(name, 'content');
  const { items } = await sb.list();
  assert.equal(items[0].path, 'f\ufffdg');
  assert.deepEqual(items[0].pathBytes, name);
  assert.equal((await sb.readBytes(items[0].pathBytes)).toString(), 'content');
  assert.equal((await sb.stat(name)).fileSize, 7);
  assert.equal((await sb.grep('content')).items[0].pathBytes.equals(name), true);
  await sb.write('plain', 'x');
  assert.equal('pathBytes' in (await sb.stat('plain')), false);
});

test('times of files are exact', async (t) => {
  const sb = await sandbox(t);
  await sb.write('f', 'x');
  assert.equal((await sb.stat('f')).modifiedNs, fs.statSync(path.join(sb.dir, 'f'), { bigint: true }).mtimeNs);
});

test('files as streams', async (t) => {
  const sb = await sandbox(t);
  const big = Buffer.alloc(3 << 20, 'abcdefg\n');
  await pipeline([big.subarray(0, 1 << 20), big.subarray(1 << 20)], sb.writeStream('big'));
  assert.ok(fs.readFileSync(path.join(sb.dir, 'big')).equals(big));
  const parts = [];
  for await (const part of sb.readStream('big')) parts.push(part);
  assert.ok(Buffer.concat(parts).equals(big));
  await pipeline(sb.readStream('big', { offset: 8, limit: 16 }), sb.writeStream('small'));
  assert.equal(fs.readFileSync(path.join(sb.dir, 'small'), 'utf8'), 'abcdefg\nabcdefg\n');
  await assert.rejects(pipeline(sb.readStream('none'), sb.writeStream('copy')), { code: 'not_found' });
  assert.equal(fs.existsSync(path.join(sb.dir, 'copy')), false);
  const begun = sb.readStream('big');
  await once(begun, 'readable');
  begun.destroy();
  await once(begun, 'close');
});

test('write_from takes an iterable, and writes nothing when it fails', async (t) => {
  const sb = await sandbox(t);
  async function* parts() {
    yield 'one ';
    yield Buffer.from('two');
  }
  assert.equal((await sb.writeFrom('f', parts())).bytes, 7);
  async function* broken() {
    yield 'one';
    throw new Error('mine');
  }
  await assert.rejects(sb.writeFrom('g', broken()), { message: 'mine' });
  assert.equal(fs.existsSync(path.join(sb.dir, 'g')), false);
});

test('tar streams and directories go in and out', async (t) => {
  const sb = await sandbox(t);
  const host = workspace(t);
  await sb.writeMany([{ path: 'd/a', data: 'A' }, { path: 'd/b', data: Buffer.from('B'), mode: 0o600 }]);
  const tar = [];
  for await (const part of sb.exportTar('d')) tar.push(part);
  await sb.importTar('e', tar);
  assert.equal((await sb.readBytes('e/a')).toString(), 'A');
  await sb.writeTar('w', Buffer.concat(tar));
  assert.equal((await sb.readBytes('w/b')).toString(), 'B');
  let entries = 0;
  await sb.export('d', path.join(host, 'out'), { onProgress: (n) => { entries = n; } });
  assert.deepEqual(fs.readdirSync(path.join(host, 'out')).sort(), ['a', 'b']);
  assert.ok(entries > 0);
  await sb.import(path.join(host, 'out'), 'in');
  assert.equal((await sb.readBytes('in/a')).toString(), 'A');
});

test('a watch iterates over changes and ends', async (t) => {
  const sb = await sandbox(t);
  const watch = await sb.watch('.', { recursive: true });
  assert.equal(await watch.poll(), undefined);
  await sb.mkdir('d');
  await sb.sh('echo x >d/f');
  const seen = [];
  for await (const event of watch) {
    seen.push(event);
    if (event.path === 'd/f') break;
  }
  assert.deepEqual(seen[0], { kind: 'create', isDir: true, path: 'd' });
  assert.deepEqual(await watch.next(), { done: true, value: undefined });
  const ending = (await sb.watch()).next();
  await sb.close();
  assert.deepEqual(await ending, { done: true, value: undefined });
});

// ---- sandboxes ----

test('close ends running calls, also ones that wait for this program', async (t) => {
  const sb = await sandbox(t);
  const never = new Promise(() => {});
  const calls = [sb.sh('sleep 600'), sb.sh('echo x; sleep 600', { onOutput: () => never }), (await sb.start(['sleep', '600'])).wait()];
  const settled = Promise.allSettled(calls);
  await until(async () => (await sb.sh('ls /proc/[0-9]*/exe | wc -l')).stdout > 4);
  await sb.close();
  for (const { value, reason } of await settled) assert.ok(value?.killedBy === 'cancel' || reason?.code, String(reason));
  await assert.rejects(sb.exec(['true']), { code: 'gone' });
  await sb.close();
});

test('destroy inside a loop over output does not wait for the loop', async (t) => {
  const sb = await sandbox(t);
  const loop = (async () => {
    for await (const chunk of sb.stream('while :; do echo x; done')) {
      assert.equal(chunk.stream, 'stdout');
      await sb.destroy();
    }
  })();
  await loop.catch((error) => assert.ok(error.code, error));
});

test('await using closes', async (t) => {
  const sb = await sandbox(t);
  await sb[Symbol.asyncDispose]();
  await assert.rejects(sb.info(), { code: 'gone' });
});

test('a detached sandbox is found by its name, and destroyed', async (t) => {
  const name = `node-${process.pid}`;
  const sb = await sandbox(t, { detached: true, name });
  await sb.sh('echo kept >f');
  await sb.close();
  assert.ok((await caisson.sandboxes()).some((s) => s.name === name && s.id === sb.id));
  const again = await caisson.connect(name);
  assert.equal(again.id, sb.id);
  assert.equal((await again.readBytes('f')).toString(), 'kept\n');
  await assert.rejects(again.pause(), { code: 'unsupported' });
  await assert.rejects(again.resume(), { code: 'unsupported' });
  await again.extend(600000);
  assert.ok((await again.info()).expiresMs > Date.now());
  await again.close();
  assert.deepEqual(await caisson.destroyId(name), []);
  assert.ok(!(await caisson.sandboxes()).some((s) => s.id === sb.id));
});

test('a protected file that appears late is told by close and logged, and can be restored', async (t) => {
  const dir = workspace(t);
  const lines = [];
  caisson.setLog((line) => { lines.push(line); });
  t.after(() => caisson.setLog(undefined));
  const sb = await open({ backend: 'jail', workspace: dir });
  await sb.startSh(`mkdir -p sub/.git/hooks sub/.git/objects sub/.git/refs
    echo ref: refs/heads/x >sub/.git/HEAD; echo '#!/bin/sh' >sub/.git/hooks/pre-commit; touch made; sleep 600`);
  await until(() => fs.existsSync(path.join(dir, 'made')));
  const hook = path.join(dir, 'sub/.git/hooks/pre-commit');
  assert.deepEqual((await sb.close()).map((d) => d.target), [hook]);
  assert.equal(fs.existsSync(hook), false);
  assert.ok(lines.some((line) => line.includes('moved to quarantine')), lines.join());
  const entry = (await caisson.asideList()).find((e) => e.path === hook);
  fs.writeFileSync(hook, 'there is one');
  await assert.rejects(caisson.asideRestore(entry.id), { code: 'exists' });
  await caisson.asideRestore(entry.id, { replace: true });
  assert.equal(fs.readFileSync(hook, 'utf8'), '#!/bin/sh\n');
  await assert.rejects(caisson.asideRemove(entry.id), { code: 'not_found' });
});

test('copy-on-write: patch, conflict, resolution, fork', async (t) => {
  const dir = workspace(t);
  fs.writeFileSync(path.join(dir, 'f'), 'old\n');
  const sb = await open({ backend: 'jail', workspace: dir, cow: true });
  t.after(() => sb.close());
  await sb.write('f', 'new\n');
  const { changes, patch } = await sb.diff({ patch: true, counts: true, hashes: true });
  assert.equal(changes[0].kind, 'modified');
  assert.equal(changes[0].linesAdded, 1);
  assert.match(patch, /^\+new$/m);
  const fork = await sb.fork();
  assert.notEqual(fork.id, sb.id);
  await fork.write('f', 'fork\n');
  assert.equal((await sb.readBytes('f')).toString(), 'new\n');
  await fork.close();
  assert.equal((await sb.snapshotAs('one')).name, 'one');
  assert.deepEqual((await sb.snapshots()).map((s) => s.name), ['one']);
  fs.writeFileSync(path.join(dir, 'f'), 'host\n');
  const first = await sb.commit();
  assert.equal(first.written, false);
  assert.equal(first.conflicts[0].host, 'host\n');
  assert.equal(first.changes[0].outcome, 'conflict');
  const second = await sb.commit({ resolved: [{ path: 'f', data: 'both\n' }] });
  assert.equal(second.written, true);
  assert.equal(fs.readFileSync(path.join(dir, 'f'), 'utf8'), 'both\n');
});

test('info, network, policy, self-check', async (t) => {
  const sb = await sandbox(t, { network: { allow: ['example.org:443'] } });
  const info = await sb.info();
  assert.equal(info.id, sb.id);
  assert.equal(info.backend, 'jail');
  assert.ok(info.capabilities.includes('exec'));
  assert.deepEqual((await sb.network()).netAllow, ['example.org:443']);
  await sb.networkSet({ netAllow: ['example.com'] });
  assert.deepEqual((await sb.network()).netAllow, ['example.com']);
  assert.equal((await sb.wouldAllow('net', 'example.org')).allowed, false);
  assert.ok((await caisson.doctor(sb.dir)).items.length > 5);
});

test('the audit log is read and verified', async (t) => {
  const sb = await sandbox(t);
  for (let i = 0; i < 300; i++) await sb.write('f', 'x'.repeat(i));
  await sb.close();
  const lines = [];
  for await (const line of caisson.auditRead(sb.id)) lines.push(line);
  assert.equal(lines.filter((l) => l.op === 'write').length, 300);
  for await (const line of caisson.auditRead(sb.id)) {
    assert.ok(line);
    break;
  }
  assert.equal((await caisson.auditVerify(sb.id)).ok, true);
  assert.ok((await caisson.auditLogs()).some((l) => l.id === sb.id));
  await caisson.auditRemove(sb.id);
  await assert.rejects(caisson.auditVerify(sb.id), { code: 'not_found' });
});

test('an audit log at a path of its own', async (t) => {
  const file = path.join(workspace(t), 'log');
  const sb = await sandbox(t, { audit: file });
  await sb.write('f', 'x');
  await assert.rejects(sb.reset(), { code: 'unsupported' });
  await sb.close();
  const ops = [];
  for await (const { op } of caisson.auditReadFile(file)) ops.push(op);
  assert.ok(ops.includes('write'), String(ops));
  const report = await caisson.auditVerifyFile(file);
  assert.equal(report.ok, true);
  assert.equal(report.lines, ops.length);
});

test('an export tells protected files and leaves them out, unless asked', async (t) => {
  const dir = workspace(t), host = workspace(t);
  fs.mkdirSync(path.join(dir, '.git/hooks'), { recursive: true });
  for (const [name, text] of [['.git/HEAD', 'ref: refs/heads/x\n'], ['.git/hooks/pre-commit', '#!/bin/sh\n']]) fs.writeFileSync(path.join(dir, name), text);
  const sb = await open({ backend: 'jail', workspace: dir });
  t.after(() => sb.close());
  const told = [];
  await sb.export('.', path.join(host, 'a'), { onProtected: (file) => { told.push(file); } });
  assert.ok(told.some((file) => file.endsWith('.git/hooks/pre-commit')), String(told));
  assert.equal(fs.existsSync(path.join(host, 'a/.git/hooks/pre-commit')), false);
  await sb.export('.', path.join(host, 'b'), { protected: true });
  assert.equal(fs.existsSync(path.join(host, 'b/.git/hooks/pre-commit')), true);
});

test('the package has the command', () => {
  const out = execFileSync('node_modules/.bin/caisson', ['--version'], { cwd: import.meta.dirname });
  assert.match(out.toString(), new RegExp(caisson.version().replaceAll('.', '\\.')));
});

// ---- a backend of one's own ----

let spawned = null;
caisson.registerBackend({
  name: 'own',
  async exec() { throw new Error('no machine'); },
});
caisson.registerBackend({
  name: 'own-spawn',
  exec(request) {
    return new Promise((resolve) => {
      const child = spawned = spawn(request.argv[0], request.argv.slice(1), { cwd: request.cwd ?? '/', env: { ...process.env, ...request.env } });
      request.signal.addEventListener('abort', () => child.kill('SIGKILL'));
      child.stdin.on('error', () => {});
      if (request.stdin) pipeline(request.stdin, child.stdin).catch(() => {});
      else child.stdin.end();
      child.stdout.on('data', (data) => { request.write(data); });
      child.stderr.on('data', (data) => { request.write(data, 'stderr'); });
      child.on('error', (error) => resolve({ notStarted: error.message }));
      child.on('close', (exitCode, signal) => resolve({ exitCode, signal }));
    });
  },
});

test('file verbs are derived from the exec of an own backend', async (t) => {
  const dir = workspace(t);
  const sb = await open({ backend: 'own-spawn', workdir: dir });
  t.after(() => sb.close());
  const result = await sb.exec(['sh', '-c', 'cat; echo err >&2; exit 4'], { stdin: 'typed' });
  assert.equal(result.stdout, 'typed');
  assert.equal(result.stderr, 'err\n');
  assert.equal(result.exitCode, 4);
  await sb.write('d/f', 'one\ntwo\n');
  assert.equal((await sb.read('d/f', { offset: 1 })).content, 'two\n');
  assert.equal((await sb.edit('d/f', { oldString: 'two', newString: '2' })).occurrences, 1);
  assert.equal(fs.readFileSync(path.join(dir, 'd/f'), 'utf8'), 'one\n2\n');
  assert.equal((await sb.glob('**/f')).items[0].path, 'd/f');
  const big = Buffer.alloc(1 << 20, 'x');
  await sb.write('big', big);
  assert.ok((await sb.readBytes('big')).equals(big));
  assert.equal((await sb.exec(['sleep', '600'], { timeoutMs: 200 })).timedOut, true);
  assert.equal(spawned.signalCode, 'SIGKILL');
  await assert.rejects(sb.exec(['sleep', '600'], { signal: AbortSignal.timeout(200) }), { name: 'AbortError' });
});

test('an own backend that fails is a failure of the call', async () => {
  await assert.rejects(open({ backend: 'own' }), { code: 'unavailable', message: /own: no machine/ });
  assert.throws(() => caisson.registerBackend({ name: 'own', async exec() { return 0; } }), { code: 'exists' });
  assert.throws(() => caisson.registerBackend({ name: 'No Name', async exec() { return 0; } }), { code: 'invalid' });
});

// ---- life of the program ----

const alive = (pid) => {
  try {
    return !/^State:\s+[ZX]/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};

/** Runs a program that opens a sandbox, starts a process in it and prints the keeper's pid. */
async function program(t, ending) {
  const dir = workspace(t);
  const text = `import { open } from 'caisson';
    const sb = await open({ backend: 'jail', workspace: ${JSON.stringify(dir)} });
    await sb.start(['sleep', '600']);
    const running = sb.sh('sleep 600', { onOutput: () => new Promise(() => {}) });
    running.catch(() => {});
    console.log((await sb.info()).keeperPid);
    ${ending}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], { cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(child.stdout, 'data');
  return { child, keeper: Number(line.toString()) };
}

test('kill -9 of the program leaves nothing', async (t) => {
  const { child, keeper } = await program(t, 'await new Promise(() => setInterval(() => {}, 1000));');
  assert.ok(alive(keeper));
  child.kill('SIGKILL');
  await until(() => !alive(keeper));
});

test('process.exit and the end of the program close sandboxes', async (t) => {
  for (const ending of ['process.exit(7);', "setTimeout(() => sb.close().then(() => { process.exitCode = 7; }), 50);"]) {
    const { child, keeper } = await program(t, ending);
    const [code] = await once(child, 'exit');
    assert.equal(code, 7);
    await until(() => !alive(keeper));
  }
});

test('a worker that is terminated leaves nothing and harms nothing', async (t) => {
  const sb = await sandbox(t);
  const dir = workspace(t);
  const worker = new Worker(`
    const { open } = require('caisson');
    const { parentPort } = require('node:worker_threads');
    open({ backend: 'jail', workspace: ${JSON.stringify(dir)} }).then(async (sb) => {
      sb.sh('echo x; sleep 600', { onOutput: () => new Promise(() => {}) }).catch(() => {});
      parentPort.postMessage((await sb.info()).keeperPid);
    });`, { eval: true });
  const [keeper] = await once(worker, 'message');
  assert.ok(alive(keeper));
  await worker.terminate();
  await until(() => !alive(keeper));
  assert.equal((await sb.exec(['echo', 'here'])).stdout, 'here\n');
});

test('a sandbox that is lost is closed', async (t) => {
  const dir = workspace(t);
  const text = `const { open } = require('caisson');
    (async () => {
      let keeper = (await (await open({ backend: 'jail', workspace: ${JSON.stringify(dir)} })).info()).keeperPid;
      const fs = require('fs');
      for (let i = 0; i < 600 && fs.existsSync('/proc/' + keeper + '/exe'); i++) { gc(); await new Promise((r) => setTimeout(r, 50)); }
      console.log(fs.existsSync('/proc/' + keeper + '/exe') ? 'alive' : 'gone');
    })();`;
  const out = execFileSync(process.execPath, ['--expose-gc', '-e', text], { cwd: import.meta.dirname });
  assert.equal(out.toString(), 'gone\n');
});
