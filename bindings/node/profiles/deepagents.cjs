'use strict';
// deepagents.cjs: SandboxBackendProtocol, BaseSandbox and LocalSandbox.
//
// A subclass of BaseSandbox has execute(command) and id, nothing else. All file methods are
// caisson's, derived from that one method: it becomes a backend of caisson. Input and output of
// its commands travel as base64, since execute() takes and returns text.

const path = require('node:path');
const { registerBackend } = require('../lib/index.cjs');
const { LazySandbox } = require('./lazy.cjs');

const PART = 60000; // bytes of base64 in one command line

// A backend stays registered as long as the process lives, so closed sandboxes leave theirs to
// later ones.
const free = [];
let count = 0;

const quote = (word) => `'${word.replaceAll("'", "'\\''")}'`;

/** Puts the input into a file inside, in parts that fit into command lines. */
async function uploadInput(owner, base64) {
  const made = await owner.execute('mktemp');
  const file = made.output.trim();
  if (made.exitCode !== 0 || file === '') throw new Error(`mktemp failed: ${made.output}`);
  for (let at = 0; at < base64.length; at += PART) {
    const { exitCode, output } = await owner.execute(`printf %s ${base64.slice(at, at + PART)} | base64 -d >>${quote(file)}`);
    if (exitCode !== 0) throw new Error(`input: ${output}`);
  }
  return file;
}

async function readAll(stream) {
  const parts = [];
  for await (const chunk of stream ?? []) parts.push(chunk);
  return Buffer.concat(parts).toString('base64');
}

/** The command line that runs argv and prints base64 of its output, ':' and its exit code. */
function commandLine({ argv, env, cwd }, input) {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${quote(value)}`);
  const words = [...(variables.length ? ['env', ...variables] : []), ...argv.map(quote)].join(' ');
  const place = cwd ? `cd ${quote(cwd)} && ` : '';
  return `{ { ${place}${words} ; } ${input} 2>/dev/null; printf ':%s' "$?"; } | base64`;
}

async function runDerived(owner, request) {
  const base64 = await readAll(request.stdin);
  const file = base64.length > PART ? await uploadInput(owner, base64) : null;
  const input = file ? `<${quote(file)}` : '';
  const before = file || base64 === '' ? '' : `printf %s ${base64} | base64 -d | `;
  const { output } = await owner.execute(before + commandLine(request, input || (before ? '' : '</dev/null')));
  if (file) await owner.execute(`rm -f ${quote(file)}`);
  const bytes = Buffer.from(output, 'base64');
  const colon = bytes.lastIndexOf(':');
  if (colon < 0) throw new Error('the output of the command has no end');
  await request.write(bytes.subarray(0, colon));
  return { exitCode: Number(bytes.subarray(colon + 1).toString()) };
}

/** A backend of caisson for an object with execute(). */
function takeBackend(owner) {
  const backend = free.pop() ?? { name: `deepagents-${++count}`, registered: false };
  backend.owner = owner;
  if (!backend.registered) registerBackend({ name: backend.name, exec: (request) => runDerived(backend.owner, request) });
  backend.registered = true;
  return backend;
}

const fileInfo = (f) => ({
  path: f.path, is_dir: f.isDir, size: f.fileSize, modified_at: new Date(Number(f.modifiedNs / 1000000n)).toISOString(),
});

class BaseSandbox {
  #lazy = null;
  #backend = null;

  /** Options of caisson; a subclass with a sandbox of its own gives those of it. */
  sandboxOptions() {
    this.#backend ??= takeBackend(this);
    return { backend: this.#backend.name, workdir: '/' };
  }

  /** The sandbox of caisson behind the file methods. */
  sandbox() {
    this.#lazy ??= new LazySandbox(this.sandboxOptions());
    return this.#lazy.get();
  }

  async lsInfo(dir) {
    try {
      return (await (await this.sandbox()).list(dir)).items.map(fileInfo);
    } catch (error) {
      if (['not_found', 'wrong_type'].includes(error.code)) return [];
      throw error;
    }
  }

  async read(filePath, offset = 0, limit = 2000) {
    try {
      const { content } = await (await this.sandbox()).read(filePath, { offset, limit, numbers: true, text: true });
      return content.trimEnd();
    } catch (error) {
      return `Error: ${error.message}`;
    }
  }

  async readRaw(filePath) {
    const sandbox = await this.sandbox();
    const [bytes, info] = await Promise.all([sandbox.readBytes(filePath), sandbox.stat(filePath)]);
    const at = fileInfo(info).modified_at;
    return { content: bytes.toString().split('\n'), created_at: at, modified_at: at };
  }

  async write(filePath, content) {
    try {
      await (await this.sandbox()).write(filePath, content, { create: true });
      return { path: filePath };
    } catch (error) {
      return { error: error.message };
    }
  }

  async edit(filePath, oldString, newString, replaceAll = false) {
    try {
      const { occurrences } = await (await this.sandbox()).edit(filePath, { oldString, newString, replaceAll });
      return { path: filePath, occurrences };
    } catch (error) {
      return { error: `Error: ${error.message}` };
    }
  }

  async grepRaw(pattern, dir = '/', glob = null) {
    const { items } = await (await this.sandbox()).grep(pattern, { path: dir, glob: glob ?? undefined });
    return items.map((m) => ({ path: m.path, line: m.line, text: m.text }));
  }

  async globInfo(pattern, dir = '/') { return (await (await this.sandbox()).glob(pattern, dir)).items.map(fileInfo); }

  async close() {
    await this.#lazy?.close();
    this.#lazy = null;
    if (this.#backend) free.push(this.#backend);
    this.#backend = null;
  }

  async [Symbol.asyncDispose]() { await this.close(); }
}

class LocalSandbox extends BaseSandbox {
  #cwd;
  #timeout;
  #env;
  #id = `local-${Date.now()}-${Math.random().toString(36).slice(2, 8)}`;

  constructor({ cwd = process.cwd(), timeout = 30000, env = {} } = {}) {
    super();
    this.#cwd = path.resolve(cwd);
    this.#timeout = timeout;
    this.#env = env;
  }

  get id() { return this.#id; }

  sandboxOptions() { return { backend: 'local', workspace: this.#cwd, timeout: this.#timeout, env: this.#env }; }

  async execute(command) {
    const result = await (await this.sandbox()).sh(command, { merge: true });
    return { output: result.output, exitCode: result.exitCode, truncated: result.truncated };
  }
}

module.exports = { BaseSandbox, LocalSandbox };
