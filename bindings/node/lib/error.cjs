'use strict';
// error.cjs: the one error of the package.

/** Why a call failed. `code` is a word such as not_found; the message is the library's. */
class CaissonError extends Error {
  constructor(code, message, { op = null, path = null, hint = null, errno = 0, denial = null, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'CaissonError';
    this.code = code;
    this.op = op;
    this.path = path;
    this.hint = hint;
    this.errno = errno;
    this.denial = denial;
  }
}

/** The addon rejects with a list of parts; its own refusals are errors with a status as code. */
function asError(reason) {
  if (Array.isArray(reason)) {
    const [code, message, op, path, hint, errno, denial] = reason;
    return new CaissonError(code, message, { op, path, hint, errno, denial });
  }
  if (reason instanceof CaissonError || !(reason instanceof Error) || reason.code === undefined) return reason;
  return ['invalid', 'nomem', 'gone'].includes(reason.code) ? new CaissonError(reason.code, reason.message) : reason;
}

/** For a call that its AbortSignal ended; `result` is what a command had done until then. */
function abortError(signal, result) {
  const error = new CaissonError('cancelled', 'cancelled by caller', { cause: signal.reason });
  error.name = 'AbortError';
  if (result !== undefined) error.result = result;
  return error;
}

module.exports = { CaissonError, asError, abortError };
