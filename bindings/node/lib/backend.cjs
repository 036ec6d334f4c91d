'use strict';
// backend.cjs: backends that are written in JavaScript.
//
// Only `exec` is needed: the library derives every file verb from it.

const os = require('node:os');
const { native } = require('./native.cjs');
const { CaissonError, asError } = require('./error.cjs');
const { STATUSES, EXEC_FLAGS } = require('./generated.cjs');

const STREAMS = { stdout: 1, stderr: 2 };
const NOT_STARTED = 3; // CSN_END_SPAWN
const SINK_STOP = 2;

const envObject = (list) => Object.fromEntries(list.map((e) => [e.slice(0, e.indexOf('=')), e.slice(e.indexOf('=') + 1)]));

/** What `exec` gets. Writes and reads go one after another: the library serves one at a time. */
class Request {
  #native;
  #last = Promise.resolve();

  constructor(handle, [argv, env, cwd, command, session, flags, hasInput, leftMs], signal) {
    this.#native = handle;
    Object.assign(this, { argv, env: envObject(env), cwd, command, session, signal });
    this.timeoutMs = leftMs < 0 ? null : leftMs;
    this.merge = (flags & EXEC_FLAGS.merge) !== 0;
    this.stdin = hasInput ? this.#input() : null;
  }

  #queue(operation) {
    this.#last = this.#last.then(operation, operation);
    return this.#last;
  }

  async *#input() {
    for (;;) {
      const chunk = await this.#queue(() => native.backendRead(this.#native));
      if (chunk === null) return;
      yield chunk;
    }
  }

  /** Passes output on. Resolves with false when no more is wanted. */
  async write(data, stream = 'stdout') {
    const bytes = typeof data === 'string' ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    if (bytes.length === 0) return true;
    return (await this.#queue(() => native.backendWrite(this.#native, STREAMS[stream] ?? 1, bytes))) !== SINK_STOP;
  }

  /** Waits for writes that were not awaited. */
  async drain() { await this.#last.catch(() => {}); }
}

function signalNumber(signal) {
  return typeof signal === 'string' ? os.constants.signals[signal] ?? 0 : signal ?? 0;
}

async function finish(handle, request, end) {
  const result = typeof end === 'number' ? { exitCode: end } : end ?? {};
  if (result.stdout !== undefined) await request.write(result.stdout, 'stdout');
  if (result.stderr !== undefined) await request.write(result.stderr, 'stderr');
  await request.drain();
  const how = result.notStarted === undefined ? 0 : NOT_STARTED;
  const code = result.exitCode ?? (how ? 127 : -1);
  native.backendEnd(handle, 0, how, code, signalNumber(result.signal), result.notStarted ?? '');
}

async function serve(backend, handle, request) {
  try {
    await finish(handle, request, await backend.exec(request));
  } catch (error) {
    await request.drain();
    const status = STATUSES[error?.code]?.value ?? STATUSES.unavailable.value;
    native.backendEnd(handle, status, 0, -1, 0, `${backend.name}: ${error?.message ?? error}`);
  }
}

/** Makes a backend available to open({ backend: name }) as long as this process lives. */
function registerBackend(backend) {
  const { name } = backend;
  if (typeof name !== 'string' || !/^[a-z][a-z0-9_-]{0,62}$/.test(name) || typeof backend.exec !== 'function') {
    throw new CaissonError('invalid', 'register_backend: it needs a name of a-z, 0-9, - and _, and a function exec', { op: 'register_backend' });
  }
  const failure = native.registerBackend(name, (handle, ...args) => {
    const controller = new AbortController();
    void serve(backend, handle, new Request(handle, args, controller.signal));
    return () => controller.abort();
  });
  if (failure) throw asError(failure);
}

module.exports = { registerBackend };
