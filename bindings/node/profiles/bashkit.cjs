'use strict';
// bashkit.cjs: the interface Sandbox of BashKit, with its factories.

const { LazySandbox, unless } = require('./lazy.cjs');

/** One command for each exec, or with `session` one shell for all, which `restart` restarts. */
class BashKitSandbox {
  #lazy;
  #session;
  #id;
  rgPath;

  constructor(options, { session = false } = {}) {
    this.#lazy = new LazySandbox(options);
    this.#session = session ? 'bashkit' : undefined;
  }

  /** Known once the sandbox is open. */
  get id() { return this.#id; }

  async sandbox() {
    const sandbox = await this.#lazy.get();
    this.#id = sandbox.id;
    return sandbox;
  }

  async exec(command, { timeout, cwd, restart } = {}) {
    const sandbox = await this.sandbox();
    const again = restart && this.#session !== undefined;
    const result = await sandbox.sh(command, { timeoutMs: timeout, cwd, session: this.#session, restart: again });
    const { stdout, stderr, exitCode, durationMs, interrupted } = result;
    return { stdout, stderr, exitCode: exitCode ?? (interrupted ? 124 : 1), durationMs, interrupted };
  }

  async readFile(path) { return (await (await this.sandbox()).readBytes(path)).toString(); }

  async writeFile(path, content) { await (await this.sandbox()).write(path, content); }

  async readDir(path) { return (await (await this.sandbox()).list(path)).items.map((f) => f.path); }

  async fileExists(path) { return (await unless('not_found', null, (await this.sandbox()).stat(path))) !== null; }

  async isDirectory(path) { return (await unless('not_found', null, (await this.sandbox()).stat(path)))?.isDir ?? false; }

  async destroy() { await this.#lazy.close(); }

  async [Symbol.asyncDispose]() { await this.destroy(); }
}

/** Finds ripgrep in the sandbox; caisson installs it where a backend needs that. */
async function ensureSandboxTools(sandbox) {
  const { rgPath } = await (await sandbox.sandbox()).info();
  sandbox.rgPath = rgPath ?? undefined;
}

const split = ({ session, cwd, ...options } = {}) => [{ ...options, workspace: cwd ?? options.workspace }, { session }];

/** A sandbox of another backend of caisson, such as jail. */
function createSandbox(config) { return new BashKitSandbox(...split(config)); }

function createLocalSandbox(config) { return createSandbox({ ...config, backend: 'local' }); }

async function createRemote(backend, { session, cwd, ...options } = {}) {
  const sandbox = new BashKitSandbox({ ...options, workdir: cwd ?? options.workdir, backend }, { session });
  await ensureSandboxTools(sandbox);
  return sandbox;
}

const createVercelSandbox = (config) => createRemote('vercel', config);
const createE2BSandbox = (config) => createRemote('e2b', config);

module.exports = { BashKitSandbox, createSandbox, createLocalSandbox, createVercelSandbox, createE2BSandbox, ensureSandboxTools };
