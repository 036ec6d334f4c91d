'use strict';
// sandbox.cjs: the class Sandbox. A method converts its arguments and runs one verb.

const { native, run } = require('./native.cjs');
const { CaissonError } = require('./error.cjs');
const { Hooks } = require('./hooks.cjs');
const { optionsToJson } = require('./options.cjs');
const { Process } = require('./process.cjs');
const { Watch } = require('./watch.cjs');
const { ExecStream, readableOf, writableOf } = require('./stream.cjs');
const g = require('./generated.cjs');

const { packExecOptions, packStartOptions, packReadOptions, packReadBytesOptions, packWriteOptions } = g;

/** The entries of { path: content } or [{ path, data }]. */
const fileItems = (files) => (Array.isArray(files) ? files : Object.entries(files).map(([path, data]) => ({ path, data })));

function operation(op) {
  if (Object.hasOwn(g.OPERATIONS, op)) return g.OPERATIONS[op];
  throw new CaissonError('invalid', `would_allow: '${op}' is not one of ${Object.keys(g.OPERATIONS).join(', ')}`, { op: 'would_allow' });
}

class Sandbox {
  #handle;
  #id;
  #closed = null;

  /** Use Sandbox.open or Sandbox.connect. */
  constructor(handle) {
    this.#handle = handle;
    this.#id = native.identify(handle);
  }

  /** Unique; begins with the name of the backend. */
  get id() { return this.#id; }

  static async open(options, { signal } = {}) {
    return new Sandbox(await run('open', undefined, [optionsToJson(options)], signal));
  }

  static async connect(id, { signal } = {}) {
    return new Sandbox(await run('connect', undefined, [id], signal));
  }

  /** Ends running calls and the handle; resolves with denials that belong to no result. */
  close() {
    this.#closed ??= run('close', this.#handle, []);
    return this.#closed;
  }

  async [Symbol.asyncDispose]() { await this.close(); }

  async destroy() { return run('destroy', this.#handle, []); }

  async reset() { return run('reset', this.#handle, []); }

  async info() { return run('info', this.#handle, []); }

  async setWorkdir(path) { return run('setWorkdir', this.#handle, [path]); }

  async cleanup(options) { return run('cleanupWith', this.#handle, [g.packCleanupOptions(options, 'cleanup')], options?.signal); }

  async extend(ms) { return run('extend', this.#handle, [ms]); }

  async pause() { return run('pause', this.#handle, []); }

  async resume() { return run('resume', this.#handle, []); }

  // ---- commands ----

  async #commandWith(verb, what, options) {
    const hooks = new Hooks();
    const packed = packExecOptions(options, verb, hooks);
    return hooks.settle(run(verb, this.#handle, [what, packed], options.signal));
  }

  // Each async function costs microseconds after a wait, so a plain command has only one: run().
  #command(verb, what, options) {
    return options === undefined ? run(verb, this.#handle, [what]) : this.#commandWith(verb, what, options);
  }

  exec(argv, options) { return this.#command('exec', argv, options); }

  sh(command, options) { return this.#command('sh', command, options); }

  /** Runs argv, or a string with the shell, and iterates over its output. */
  stream(command, options = {}) {
    const verb = typeof command === 'string' ? 'sh' : 'exec';
    const start = (onOutput, signal) => this.#command(verb, command, { ...options, onOutput, signal });
    return new ExecStream(start, options.signal);
  }

  async start(argv, options) {
    const packed = packStartOptions(options, 'start', new Hooks());
    return new Process(await run('start', this.#handle, [argv, packed], options?.signal), this);
  }

  async startSh(command, options) {
    const packed = packStartOptions(options, 'start', new Hooks());
    return new Process(await run('startSh', this.#handle, [command, packed], options?.signal), this);
  }

  async process(pid) { return new Process(await run('processOpen', this.#handle, [pid]), this); }

  async processes() { return (await run('processes', this.#handle, [])).items; }

  async waitPort(port, { timeoutMs = 30000, signal } = {}) { return run('waitPort', this.#handle, [port, timeoutMs], signal); }

  async waitLog(text, { timeoutMs = 30000, signal } = {}) { return run('waitLog', this.#handle, [text, timeoutMs], signal); }

  // ---- files ----

  async read(path, options) { return run('read', this.#handle, [path, packReadOptions(options, 'read')], options?.signal); }

  async readBytes(path, options) {
    return run('readBytes', this.#handle, [path, packReadBytesOptions(options, 'read_bytes')], options?.signal);
  }

  readStream(path, options) {
    const packed = packReadBytesOptions(options, 'read_bytes');
    return readableOf((sink, signal) => {
      const hooks = new Hooks();
      return hooks.settle(run('readBytes', this.#handle, [path, packed, hooks.sink(sink)], signal));
    }, options?.signal);
  }

  async write(path, data, options) {
    return run('write', this.#handle, [path, data, packWriteOptions(options, 'write')], options?.signal);
  }

  /** The content comes from an iterable or a Readable. */
  async writeFrom(path, source, options) {
    const hooks = new Hooks();
    const args = [path, hooks.source(source), packWriteOptions(options, 'write')];
    return hooks.settle(run('writeFrom', this.#handle, args, options?.signal));
  }

  writeStream(path, options) { return writableOf((source) => this.writeFrom(path, source, options)); }

  /** Writes all files or none: { path: content }, or [{ path, data, mode, ifHash }]. */
  async writeMany(files, options) {
    const items = fileItems(files).map(g.packFileContent);
    return run('writeMany', this.#handle, [items, g.packWriteManyOptions(options, 'write_many')], options?.signal);
  }

  /** Writes the files of a tar stream below `path`, all or none. */
  async writeTar(path, source, options) {
    const hooks = new Hooks();
    const args = [path, hooks.source(source), g.packWriteManyOptions(options, 'write_tar')];
    return hooks.settle(run('writeTar', this.#handle, args, options?.signal));
  }

  async edit(path, edits, options) {
    const items = (Array.isArray(edits) ? edits : [edits]).map(g.packEditItem);
    return run('edit', this.#handle, [path, items, g.packEditOptions(options, 'edit')], options?.signal);
  }

  async delete(path, options) { return run('delete', this.#handle, [path, g.packDeleteOptions(options, 'delete')], options?.signal); }

  async mkdir(path, options) { return run('mkdir', this.#handle, [path, g.packMkdirOptions(options, 'mkdir')], options?.signal); }

  async rename(from, to, options) { return run('rename', this.#handle, [from, to, g.packMkdirOptions(options, 'rename')], options?.signal); }

  async stat(path, options) {
    return (await run('stat', this.#handle, [path, g.packStatOptions(options, 'stat')], options?.signal)).items[0];
  }

  async list(path = '.', options) { return run('list', this.#handle, [path, g.packStatOptions(options, 'list')], options?.signal); }

  /** Paths below `path` (default: the working directory) that match. */
  async glob(pattern, path, options) {
    return run('glob', this.#handle, [pattern, path, g.packGlobOptions(options, 'glob')], options?.signal);
  }

  async grep(pattern, options) {
    return run('grep', this.#handle, [pattern, g.packGrepOptions(options, 'grep')], options?.signal);
  }

  async watch(path = '.', options) {
    const handle = await run('watchOpen', this.#handle, [path, g.packWatchOptions(options, 'watch')], options?.signal);
    return new Watch(handle, this, options?.signal);
  }

  // ---- network, transfer, policy ----

  /** The network rules, and events from number `since` on. */
  async network(since = 0) { return run('network', this.#handle, [since]); }

  async networkSet(rules) { return run('networkSet', this.#handle, [g.packNetworkRules(rules, 'network_set')]); }

  async export(path, hostDir, options) {
    const hooks = new Hooks();
    const args = [path, hostDir, g.packExportOptions(options, 'export', hooks)];
    return hooks.settle(run('export', this.#handle, args, options?.signal));
  }

  async import(hostDir, path, options) {
    const hooks = new Hooks();
    const args = [hostDir, path, g.packTransferOptions(options, 'import', hooks)];
    return hooks.settle(run('import', this.#handle, args, options?.signal));
  }

  /** A directory as a tar stream. */
  exportTar(path = '.', options = undefined) {
    return readableOf((sink, signal) => {
      const hooks = new Hooks();
      const args = [path, hooks.sink(sink), g.packExportOptions(options, 'export_tar', hooks)];
      return hooks.settle(run('exportTar', this.#handle, args, signal));
    }, options?.signal);
  }

  async importTar(path, source, options) {
    const hooks = new Hooks();
    const args = [path, hooks.source(source), g.packTransferOptions(options, 'import_tar', hooks)];
    return hooks.settle(run('importTar', this.#handle, args, options?.signal));
  }

  async wouldAllow(op, target) { return run('wouldAllow', this.#handle, [operation(op), target]); }

  // ---- workspaces that can be compared, kept and thrown away ----

  async snapshot() { return run('snapshot', this.#handle, []); }

  async snapshotAs(name) { return run('snapshotAs', this.#handle, [name]); }

  async snapshots() { return (await run('snapshots', this.#handle, [])).items; }

  async rollback(snapshot) { return run('rollback', this.#handle, [snapshot]); }

  async fork(name) { return new Sandbox(await run('fork', this.#handle, [name])); }

  async undo() { return run('undo', this.#handle, []); }

  async discard() { return run('discard', this.#handle, []); }

  async diff(options) { return run('diff', this.#handle, [g.packDiffOptions(options, 'diff')], options?.signal); }

  async commit(options) { return run('commit', this.#handle, [g.packCommitOptions(options, 'commit')], options?.signal); }
}

module.exports = { Sandbox };
