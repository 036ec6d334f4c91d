'use strict';
// executor.cjs: the interface SandboxExecutor, local and on Vercel.

const { LazySandbox, unless } = require('./lazy.cjs');

const ALLOWED = [
  'awk', 'cat', 'cp', 'cut', 'date', 'diff', 'echo', 'find', 'grep', 'head', 'ls', 'mkdir', 'mv', 'node', 'printf', 'pwd',
  'python', 'python3', 'rm', 'sed', 'sleep', 'sort', 'tail', 'touch', 'tr', 'uniq', 'wc',
];

class Executor {
  #lazy;

  constructor(options) { this.#lazy = new LazySandbox(options); }

  sandbox() { return this.#lazy.get(); }

  /** Without args the command is a command line; with args nothing is joined. */
  async execute(command, args, { cwd, env, timeout, sudo } = {}) {
    const sandbox = await this.sandbox();
    const options = { cwd, env, timeoutMs: timeout, sudo };
    const result = args ? await sandbox.exec([command, ...args], options) : await sandbox.sh(command, options);
    return { stdout: result.stdout, stderr: result.stderr, exitCode: result.exitCode ?? (result.timedOut ? 124 : 1) };
  }

  async writeFile(path, content) { await (await this.sandbox()).write(path, content); }

  async readFile(path) {
    const bytes = await unless('not_found', null, (await this.sandbox()).readBytes(path));
    return bytes === null ? null : bytes.toString();
  }

  async listFiles(path = '.') { return (await (await this.sandbox()).list(path)).items.map((f) => f.path); }

  /** Ends the sandbox; the next call opens a new one. */
  async close() { await this.#lazy.close(); }

  async [Symbol.asyncDispose]() { await this.close(); }
}

/** Files are in `.sandbox`; only allow-listed commands run. */
class LocalSandboxExecutor extends Executor {
  constructor({ sandboxDir = '.sandbox', commands = ALLOWED, timeout = 10000 } = {}) {
    super({ backend: 'local', workspace: sandboxDir, createWorkspace: true, commands, timeout });
  }

  /** Removes all files; the directory stays. */
  async cleanup() { await (await this.sandbox()).cleanup({ force: true }); }
}

/** A microVM of Vercel; there is no allow-list, since it is isolated. */
class VercelSandboxExecutor extends Executor {
  constructor(options = {}) { super({ image: 'python3.13', lifetime: 300000, ...options, backend: 'vercel' }); }

  async cleanup() { await this.close(); }
}

function getSandboxExecutor() { return process.env.VERCEL === '1' ? new VercelSandboxExecutor() : new LocalSandboxExecutor(); }

module.exports = { LocalSandboxExecutor, VercelSandboxExecutor, getSandboxExecutor };
