// profiles.test.mjs: the test cases of the documents that the profiles come from.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test, before, after, beforeEach, afterEach } from 'node:test';
import { createRequire } from 'node:module';
import { workspace } from './support.mjs';
import { BaseSandbox, LocalSandbox } from 'caisson/profiles/deepagents';
import { createLocalSandbox, createSandbox, ensureSandboxTools } from 'caisson/profiles/bashkit';
import { LocalSandboxExecutor, VercelSandboxExecutor, getSandboxExecutor } from 'caisson/profiles/executor';
import { Sandbox } from 'caisson/profiles/permissions';

const require = createRequire(import.meta.url);
const { LazySandbox } = require('./node_modules/caisson/profiles/lazy.cjs');

/** A directory for a whole suite. */
function suiteDir() {
  const removals = [];
  const dir = workspace({ after: (fn) => removals.push(fn) });
  return [dir, () => removals.forEach((fn) => fn())];
}

describe('deepagents: LocalSandbox', () => {
  const [testDir, remove] = suiteDir();
  let sandbox;
  before(() => { sandbox = new LocalSandbox({ cwd: testDir }); });
  after(async () => {
    await sandbox.close();
    remove();
  });

  test('execute returns output and exit code', async () => {
    const result = await sandbox.execute('echo hello');
    assert.equal(result.output.trim(), 'hello');
    assert.equal(result.exitCode, 0);
    assert.equal(result.truncated, false);
  });
  test('execute captures stderr', async () => {
    const result = await sandbox.execute('echo error >&2');
    assert.equal(result.output.trim(), 'error');
    assert.equal(result.exitCode, 0);
  });
  test('execute returns non-zero exit code on failure', async () => {
    assert.equal((await sandbox.execute('exit 42')).exitCode, 42);
  });
  test('id is unique', () => {
    const other = new LocalSandbox({ cwd: testDir });
    assert.notEqual(sandbox.id, other.id);
    assert.match(sandbox.id, /^local-\d+-[a-z0-9]+$/);
  });
  test('write and read file', async () => {
    const written = await sandbox.write('/test.txt', 'hello world');
    assert.equal(written.error, undefined);
    assert.equal(written.path, '/test.txt');
    assert.ok((await sandbox.read('/test.txt')).includes('hello world'));
  });
  test('edit file', async () => {
    await sandbox.write('/edit-test.txt', 'foo bar baz');
    const edited = await sandbox.edit('/edit-test.txt', 'bar', 'qux');
    assert.equal(edited.error, undefined);
    assert.equal(edited.occurrences, 1);
    assert.ok((await sandbox.read('/edit-test.txt')).includes('foo qux baz'));
  });
  test('lsInfo lists files', async () => {
    const infos = await sandbox.lsInfo(testDir);
    assert.ok(infos.length > 0);
    assert.ok(infos.some((f) => f.path === 'test.txt'));
  });
  test('messages are those of the protocol', async () => {
    assert.equal(await sandbox.read('/none'), "Error: File '/none' not found");
    assert.deepEqual(await sandbox.write('/test.txt', 'x'), { error: 'Cannot write to /test.txt because it already exists.' });
    await sandbox.write('/twice', 'a a');
    assert.deepEqual(await sandbox.edit('/twice', 'z', 'y'), { error: "Error: String not found in file: 'z'" });
    assert.deepEqual(await sandbox.edit('/twice', 'a', 'y'), {
      error: "Error: String 'a' appears multiple times. Use replaceAll=true to replace all occurrences.",
    });
    assert.deepEqual(await sandbox.lsInfo('/none'), []);
  });
});

describe('deepagents: BaseSandbox with execute only', () => {
  class Own extends BaseSandbox {
    constructor(dir) {
      super();
      this.dir = dir;
    }

    get id() { return 'own'; }

    execute(command) {
      return new Promise((resolve) => {
        execFile('bash', ['-c', command], { cwd: this.dir, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
          resolve({ output: stdout + stderr, exitCode: error ? error.code : 0, truncated: false });
        });
      });
    }
  }

  test('every file method is derived from execute', async (t) => {
    const dir = workspace(t);
    const own = new Own(dir);
    const file = path.join(dir, "it's a file");
    const text = 'naïve 😀\n'.repeat(3) + '$HOME `x` \'"\\\n';
    assert.deepEqual(await own.write(file, text), { path: file });
    assert.equal(fs.readFileSync(file, 'utf8'), text);
    assert.deepEqual((await own.readRaw(file)).content, text.split('\n'));
    assert.equal((await own.edit(file, '😀', 'x', true)).occurrences, 3);
    assert.deepEqual(await own.lsInfo(dir).then((l) => l.map((f) => f.path)), ["it's a file"]);
    assert.deepEqual(await own.globInfo('**/*file', dir).then((l) => l.map((f) => f.path)), ["it's a file"]);
    assert.deepEqual(await own.grepRaw('$HOME', dir), [{ path: "it's a file", line: 4, text: '$HOME `x` \'"\\' }]);
    assert.equal(await own.read(path.join(dir, 'none')), `Error: File '${path.join(dir, 'none')}' not found`);
    await own.close();
  });
  test('a file is larger than a command line', async (t) => {
    const own = new Own(workspace(t));
    const text = 'x'.repeat(1 << 20);
    assert.equal((await own.write(path.join(own.dir, 'big'), text)).error, undefined);
    assert.equal((await own.readRaw(path.join(own.dir, 'big'))).content[0].length, 1 << 20);
    await own.close();
  });
});

describe('bashkit: Sandbox', () => {
  const [dir, remove] = suiteDir();
  let sandbox;
  before(() => { sandbox = createLocalSandbox({ cwd: dir }); });
  after(async () => {
    await sandbox.destroy();
    remove();
  });

  test('exec returns all five fields', async () => {
    const result = await sandbox.exec('echo out; echo err >&2; exit 2');
    assert.deepEqual({ ...result, durationMs: 0 }, { stdout: 'out\n', stderr: 'err\n', exitCode: 2, durationMs: 0, interrupted: false });
    assert.ok(result.durationMs > 0);
  });
  test('a timeout interrupts', async () => {
    assert.equal((await sandbox.exec('sleep 600', { timeout: 100 })).interrupted, true);
  });
  test('the working directory is that of the configuration, or of the call', async () => {
    fs.mkdirSync(path.join(dir, 'inner'));
    assert.equal((await sandbox.exec('pwd')).stdout.trim(), fs.realpathSync(dir));
    assert.equal((await sandbox.exec('pwd', { cwd: 'inner' })).stdout.trim(), path.join(fs.realpathSync(dir), 'inner'));
  });
  test('files: write, read, list, exists, directory', async () => {
    await sandbox.writeFile('a/b.txt', 'text');
    assert.equal(await sandbox.readFile('a/b.txt'), 'text');
    assert.deepEqual(await sandbox.readDir('a'), ['b.txt']);
    assert.equal(await sandbox.fileExists('a/b.txt'), true);
    assert.equal(await sandbox.fileExists('a/none'), false);
    assert.equal(await sandbox.isDirectory('a'), true);
    assert.equal(await sandbox.isDirectory('a/b.txt'), false);
    await assert.rejects(sandbox.readFile('none'), { code: 'not_found' });
    await assert.rejects(sandbox.readDir('none'), { code: 'not_found' });
  });
  test('parallel first calls open one sandbox, and destroy resets', async (t) => {
    const lazy = createLocalSandbox({ cwd: workspace(t) });
    assert.equal(lazy.id, undefined);
    const all = await Promise.all(Array.from({ length: 20 }, () => lazy.sandbox()));
    assert.equal(new Set(all).size, 1);
    assert.match(lazy.id, /^local-/);
    await lazy.destroy();
    assert.equal((await lazy.exec('echo again')).stdout, 'again\n');
    await lazy.destroy();
  });
  test('a session keeps its state until restart', async (t) => {
    const shell = createSandbox({ backend: 'jail', cwd: workspace(t), session: true });
    await shell.exec('V=kept');
    assert.equal((await shell.exec('echo $V')).stdout, 'kept\n');
    assert.equal((await shell.exec('echo $V', { restart: true })).stdout, '\n');
    await shell.destroy();
  });
  test('rgPath is what the sandbox has', async () => {
    await ensureSandboxTools(sandbox);
    assert.equal(sandbox.rgPath ?? null, (await (await sandbox.sandbox()).info()).rgPath);
  });
  test('a failure to open is not kept', async (t) => {
    const dirs = workspace(t);
    const lazy = new LazySandbox({ backend: 'local', workspace: path.join(dirs, 'later') });
    await assert.rejects(lazy.get());
    fs.mkdirSync(path.join(dirs, 'later'));
    await lazy.get();
    await lazy.close();
  });
});

describe('executor: LocalSandboxExecutor', () => {
  const [dir, remove] = suiteDir();
  const sandboxDir = path.join(dir, '.sandbox');
  let executor;
  beforeEach(() => { executor = new LocalSandboxExecutor({ sandboxDir }); });
  afterEach(() => executor.close());
  after(remove);

  test('should execute allowed commands', async () => {
    assert.equal((await executor.execute('echo', ['a b', '$HOME'])).stdout, 'a b $HOME\n');
    assert.equal((await executor.execute('echo one two')).stdout, 'one two\n');
  });
  test('should reject disallowed commands', async () => {
    await assert.rejects(executor.execute('curl', ['example.org']), { code: 'denied' });
    await assert.rejects(executor.execute('curl example.org'), { code: 'denied' });
  });
  test('should handle command timeout', async () => {
    assert.equal((await executor.execute('sleep', ['600'], { timeout: 100 })).exitCode, 124);
  });
  test('should return stdout, stderr, exitCode', async () => {
    const result = await executor.execute('cat', ['none']);
    assert.equal(result.stdout, '');
    assert.match(result.stderr, /none/);
    assert.equal(result.exitCode, 1);
  });
  test('should write file to sandbox directory', async () => {
    await executor.writeFile('f.txt', 'text');
    assert.equal(fs.readFileSync(path.join(sandboxDir, 'f.txt'), 'utf8'), 'text');
    await executor.writeFile('b.bin', Buffer.from([0, 255]));
    assert.deepEqual([...fs.readFileSync(path.join(sandboxDir, 'b.bin'))], [0, 255]);
  });
  test('should create parent directories', async () => {
    await executor.writeFile('deep/er/f.txt', 'x');
    assert.equal(fs.readFileSync(path.join(sandboxDir, 'deep/er/f.txt'), 'utf8'), 'x');
  });
  test('should read file from sandbox', async () => {
    await executor.writeFile('r.txt', 'read me');
    assert.equal(await executor.readFile('r.txt'), 'read me');
  });
  test('should return null for non-existent file', async () => {
    assert.equal(await executor.readFile('none'), null);
  });
  test('should list files in sandbox', async () => {
    await executor.cleanup();
    await executor.writeFile('one', '1');
    await executor.writeFile('two', '2');
    assert.deepEqual(await executor.listFiles(), ['one', 'two']);
  });
  test('should return empty array when sandbox is empty', async () => {
    await executor.cleanup();
    assert.deepEqual(await executor.listFiles(), []);
  });
  test('should remove all files from sandbox, and recreate the empty directory', async () => {
    await executor.writeFile('a/b', 'x');
    await executor.cleanup();
    assert.deepEqual(fs.readdirSync(sandboxDir), []);
  });
  test('the factory selects by VERCEL', () => {
    const old = process.env.VERCEL;
    process.env.VERCEL = '1';
    assert.ok(getSandboxExecutor() instanceof VercelSandboxExecutor);
    delete process.env.VERCEL;
    assert.ok(getSandboxExecutor() instanceof LocalSandboxExecutor);
    if (old !== undefined) process.env.VERCEL = old;
  });
});

const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');

describe('permissions: Sandbox', () => {
  const [root, remove] = suiteDir();
  const homeDir = path.join(root, 'home');
  const workingDir = path.join(homeDir, 'desktop');
  const shared = path.join(root, 'shared');
  let sandbox;
  before(() => {
    for (const dir of [homeDir, workingDir, shared]) fs.mkdirSync(dir, { recursive: true });
    fs.writeFileSync(path.join(shared, 'doc.txt'), 'shared\n');
    fs.writeFileSync(path.join(root, 'outside.txt'), 'outside\n');
    fs.writeFileSync(path.join(workingDir, 'lines.txt'), 'one\ntwo\nthree\n');
    fs.writeFileSync(path.join(workingDir, 'dot.png'), PNG);
    fs.symlinkSync('lines.txt', path.join(workingDir, 'link.txt'));
    sandbox = new Sandbox({ homeDir, permissions: { workingDir, readDirs: [shared] }, network: { allowedDomains: ['example.org'] } });
  });
  after(async () => {
    await sandbox.close();
    remove();
  });

  test('construction', () => {
    assert.equal(sandbox.homeDir, homeDir);
    assert.equal(sandbox.workingDir, workingDir);
    assert.deepEqual(sandbox.permissions, { workingDir, readDirs: [shared] });
  });
  test('read: text', async () => {
    assert.deepEqual(await sandbox.read({ path: 'lines.txt' }), {
      type: 'text', content: 'one\ntwo\nthree\n', bytes: 14, totalLines: 3, outputLines: 3, truncated: false, truncatedBy: null,
    });
    assert.equal((await sandbox.read({ path: path.join(shared, 'doc.txt') })).content, 'shared\n');
    assert.equal((await sandbox.read({ path: '~/desktop/lines.txt' })).totalLines, 3);
  });
  test('read: image', async () => {
    assert.deepEqual(await sandbox.read({ path: 'dot.png' }), { type: 'image', content: PNG, bytes: PNG.length, mimeType: 'image/png' });
  });
  test('read: offset and limit', async () => {
    const part = await sandbox.read({ path: 'lines.txt', offset: 1, limit: 1 });
    assert.equal(part.content, 'two\n');
    assert.equal(part.truncatedBy, 'lines');
  });
  test('read: a path outside of the permissions, and a symlink', async () => {
    await assert.rejects(sandbox.read({ path: path.join(root, 'outside.txt') }));
    await assert.rejects(sandbox.read({ path: 'link.txt' }));
  });
  test('write: new, append, parents', async () => {
    const file = path.join(homeDir, 'documents/new.txt');
    assert.deepEqual(await sandbox.write({ path: file, content: 'a' }), { bytes: 1, resolvedPath: file });
    await sandbox.write({ path: file, content: 'b', append: true });
    assert.equal(fs.readFileSync(file, 'utf8'), 'ab');
  });
  test('write: relative, outside, symlink', async () => {
    await assert.rejects(sandbox.write({ path: 'relative', content: 'x' }), { code: 'invalid' });
    await assert.rejects(sandbox.write({ path: path.join(shared, 'x'), content: 'x' }));
    await assert.rejects(sandbox.write({ path: path.join(workingDir, 'link.txt'), content: 'x' }));
    assert.equal(fs.readFileSync(path.join(workingDir, 'lines.txt'), 'utf8'), 'one\ntwo\nthree\n');
  });
  test('exec: success, failure, timeout', async () => {
    assert.deepEqual(await sandbox.exec({ command: 'echo hi' }), { stdout: 'hi\n', stderr: '', exitCode: 0, signal: null, failed: false });
    assert.equal((await sandbox.exec({ command: 'exit 3' })).exitCode, 3);
    const late = await sandbox.exec({ command: 'sleep 600', timeoutMs: 100 });
    assert.equal(late.failed, true);
    assert.equal(late.exitCode, null);
  });
  test('exec: working directory and HOME', async () => {
    assert.equal((await sandbox.exec({ command: 'pwd; echo $HOME' })).stdout, `${workingDir}\n${homeDir}\n`);
    assert.equal((await sandbox.exec({ command: 'pwd', cwd: '..' })).stdout, `${homeDir}\n`);
    assert.equal((await sandbox.exec({ command: 'echo $HOME', env: { A: 'b' } })).stdout, `${homeDir}\n`);
  });
  test('exec: domains', async () => {
    assert.equal((await sandbox.exec({ command: 'echo ok', allowedDomains: ['example.org'] })).stdout, 'ok\n');
    await assert.rejects(sandbox.exec({ command: 'true', allowedDomains: ['other.example'] }), { code: 'denied' });
    await assert.rejects(sandbox.exec({ command: 'true', allowedDomains: ['not a host'] }), { code: 'invalid' });
  });
});
