'use strict';
// process.cjs: a background process of a sandbox.

const os = require('node:os');
const { native, run } = require('./native.cjs');
const { CaissonError } = require('./error.cjs');

const STREAMS = { stdout: 1, stderr: 2 };

function streamNumber(name) {
  if (Object.hasOwn(STREAMS, name)) return STREAMS[name];
  throw new CaissonError('invalid', `logs: stream: '${name}' is not stdout or stderr`, { op: 'logs' });
}

function signalNumber(signal) {
  if (typeof signal === 'number') return signal;
  const number = os.constants.signals[signal] ?? os.constants.signals[`SIG${signal}`];
  if (number === undefined) throw new CaissonError('invalid', `signal: '${signal}' is not a signal`, { op: 'signal' });
  return number;
}

class Process {
  #handle;
  #sandbox; // keeps the sandbox open
  #pid;

  constructor(handle, sandbox) {
    this.#handle = handle;
    this.#sandbox = sandbox;
    this.#pid = native.identify(handle);
  }

  get pid() { return this.#pid; }

  get sandbox() { return this.#sandbox; }

  /** Output from byte `offset` on; waits up to `waitMs` for some. */
  async logs({ stream = 'stdout', offset = 0, waitMs = 0, signal } = {}) {
    return run('processLogs', this.#handle, [streamNumber(stream), offset, waitMs], signal);
  }

  /** All output of one stream until it ends, as Buffers. */
  async *stream({ stream = 'stdout', offset = 0, signal } = {}) {
    for (;;) {
      const chunk = await this.logs({ stream, offset, waitMs: Infinity, signal });
      if (chunk.data.length > 0) yield chunk.data;
      offset = chunk.offset + chunk.data.length;
      if (chunk.end && offset >= chunk.total) return;
    }
  }

  /** Waits until the process has ended. */
  async wait({ timeoutMs = Infinity, signal } = {}) {
    const { items, denials } = await run('processWait', this.#handle, [timeoutMs], signal);
    return { ...items[0], denials };
  }

  async signal(signal = 'SIGTERM') { return run('processSignal', this.#handle, [signalNumber(signal)]); }

  async write(data, { timeoutMs = 0, signal } = {}) {
    return run('processWrite', this.#handle, [data, timeoutMs], signal);
  }

  async closeStdin() { return run('processCloseStdin', this.#handle, []); }

  async resize(rows, cols) { return run('processResize', this.#handle, [rows, cols]); }

  /** Ends the handle, not the process (unless it was started with `tied`). */
  release() { native.release(this.#handle); }

  [Symbol.dispose]() { this.release(); }
}

module.exports = { Process };
