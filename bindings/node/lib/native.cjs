'use strict';
// native.cjs: loads the addon and runs its verbs.
//
// The addon, libcaisson and its programs lie in one directory, since the library looks for them
// beside itself.

const path = require('node:path');
const { asError, abortError } = require('./error.cjs');

function load() {
  const place = `${process.platform}-${process.arch}`;
  const file = path.join(__dirname, '..', 'prebuilds', place, 'caisson.node');
  try {
    return require(file);
  } catch (cause) {
    const why = cause.code === 'MODULE_NOT_FOUND' ? `this package has no build for ${place}` : cause.message;
    throw new Error(`caisson: ${why} (${file})`, { cause });
  }
}

const native = load();
native.setFactories(require('./generated.cjs').factories);
process.once('exit', () => native.shutdown());

/** Whether the result shows that the call was ended before it was done. */
const wasStopped = (r) => r?.killedBy === 'cancel' || (r?.end === false && r.data.length === 0);

async function runWithSignal(verb, handle, args, signal) {
  if (signal.aborted) throw abortError(signal);
  const cancel = native.cancelNew();
  const onAbort = () => native.cancelFire(cancel);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    const result = await native[verb](cancel, handle, ...args);
    if (signal.aborted && wasStopped(result)) throw abortError(signal, result);
    return result;
  } catch (reason) {
    const error = asError(reason);
    throw signal.aborted && error.name !== 'AbortError' ? abortError(signal) : error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Runs a verb. The Error is made after the await, so that its stack names the caller. */
async function run(verb, handle, args, signal) {
  if (signal !== undefined && signal !== null) return runWithSignal(verb, handle, args, signal);
  try {
    return await native[verb](undefined, handle, ...args);
  } catch (reason) {
    throw asError(reason);
  }
}

module.exports = { native, run };
