'use strict';
// watch.cjs: changes of files, as an async iterator.

const { native, run } = require('./native.cjs');

class Watch {
  #handle;
  #sandbox;
  #signal;
  #ended = false;

  constructor(handle, sandbox, signal) {
    this.#handle = handle;
    this.#sandbox = sandbox;
    this.#signal = signal;
  }

  get sandbox() { return this.#sandbox; }

  /** The next event, or undefined after `timeoutMs`. */
  async poll({ timeoutMs = 0, signal = this.#signal } = {}) {
    try {
      return await run('watchNext', this.#handle, [timeoutMs], signal);
    } catch (error) {
      if (error.code === 'timeout') return undefined;
      throw error;
    }
  }

  /** Ends with the sandbox, and after release(). */
  async next() {
    if (this.#ended) return { done: true, value: undefined };
    try {
      return { done: false, value: await run('watchNext', this.#handle, [Infinity], this.#signal) };
    } catch (error) {
      const released = this.#ended;
      this.release();
      if (error.code === 'gone' || released) return { done: true, value: undefined };
      throw error;
    }
  }

  async return(value) {
    this.release();
    return { done: true, value };
  }

  release() {
    this.#ended = true;
    native.release(this.#handle);
  }

  [Symbol.asyncIterator]() { return this; }

  [Symbol.dispose]() { this.release(); }

  async [Symbol.asyncDispose]() { this.release(); }
}

module.exports = { Watch };
