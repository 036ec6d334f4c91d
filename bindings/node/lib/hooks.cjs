'use strict';
// hooks.cjs: functions of the caller that the library calls while a verb runs.
//
// The library waits until native.answer is called. An error of the caller's function stops the
// verb, which then fails with that error.

const { native } = require('./native.cjs');

class Hooks {
  error = undefined;

  #fail(id, error) {
    this.error ??= error ?? new Error('a callback failed');
    native.answer(id, -1);
  }

  /** Calls the function; false stops the verb. */
  #call(id, fn, ...args) {
    let answer;
    try {
      answer = fn(...args);
    } catch (error) {
      return this.#fail(id, error);
    }
    if (typeof answer?.then !== 'function') return native.answer(id, answer === false ? 1 : 0);
    answer.then((v) => native.answer(id, v === false ? 1 : 0), (error) => this.#fail(id, error));
  }

  output(fn) {
    return fn && ((id, stream, data) => this.#call(id, fn, stream === 2 ? 'stderr' : 'stdout', data));
  }

  denial(fn) { return fn && ((id, denial) => this.#call(id, fn, denial)); }

  progress(fn) { return fn && ((id, entries, bytes) => this.#call(id, fn, entries, bytes)); }

  protected(fn) { return fn && ((id, path, rule) => this.#call(id, fn, path, rule)); }

  sink(fn) { return fn && ((id, chunk) => this.#call(id, fn, chunk)); }

  /** Supplies the bytes of an iterable or stream. */
  source(iterable) {
    const chunks = bytesFrom(iterable)[Symbol.asyncIterator]();
    let rest = Buffer.alloc(0);
    const next = async (max) => {
      while (rest.length === 0) {
        const { done, value } = await chunks.next();
        if (done) return rest;
        rest = value;
      }
      const part = rest.subarray(0, max);
      rest = rest.subarray(part.length);
      return part;
    };
    return (id, max) => {
      next(max).then((part) => native.answer(id, part), (error) => this.#fail(id, error));
    };
  }

  env(env) {
    if (env === undefined || env === null || Array.isArray(env)) return env ?? undefined;
    return Object.entries(env).map(([name, value]) => `${name}=${value}`);
  }

  /** The result of the verb, unless a function of the caller has failed. */
  async settle(promise) {
    try {
      const result = await promise;
      if (this.error === undefined) return result;
    } catch (error) {
      if (this.error === undefined) throw error;
    }
    throw this.error;
  }
}

async function* bytesFrom(source) {
  if (typeof source === 'string' || source instanceof Uint8Array) source = [source];
  for await (const chunk of source) {
    yield typeof chunk === 'string' ? Buffer.from(chunk) : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  }
}

module.exports = { Hooks };
