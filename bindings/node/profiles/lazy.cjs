'use strict';
// lazy.cjs: a sandbox that is opened by the first call that needs it, once for all callers.

const { open } = require('../lib/index.cjs');

class LazySandbox {
  #options;
  #opened = null;

  constructor(options) { this.#options = options; }

  /** The sandbox. A failure to open is not kept: the next call tries again. */
  get() {
    this.#opened ??= open(this.#options).catch((error) => {
      this.#opened = null;
      throw error;
    });
    return this.#opened;
  }

  /** Ends it; the next get() opens a new one. */
  async close() {
    const opened = this.#opened;
    this.#opened = null;
    if (opened) await (await opened).close();
  }
}

/** The value, or `instead` if the call fails with this code. */
async function unless(code, instead, promise) {
  try {
    return await promise;
  } catch (error) {
    if (error.code === code) return instead;
    throw error;
  }
}

module.exports = { LazySandbox, unless };
