'use strict';
// records.cjs: what concerns no open sandbox: detached ones, audit logs, files moved away.

const { native, run } = require('./native.cjs');
const { Hooks } = require('./hooks.cjs');
const { packAsideRestoreOptions } = require('./generated.cjs');

function version() { return native.version(); }

/** Receives debug lines of the library; undefined: off. */
function setLog(fn) { native.setLog(fn); }

async function sandboxes() { return (await run('sandboxes', undefined, [])).items; }

/** Destroys a sandbox by id or name; resolves with denials that belong to no result. */
async function destroyId(id) { return run('destroyIdReport', undefined, [id]); }

async function doctor(workspace) { return run('doctor', undefined, [workspace]); }

/** The lines of a log, parsed. */
async function* auditLines(verb, what) {
  const lines = [];
  const hooks = new Hooks();
  let wake = null, taken = null, done = false;
  const sink = hooks.sink((chunk) => {
    lines.push(...chunk.toString().split('\n').slice(0, -1));
    wake?.();
    return new Promise((resolve) => { taken = resolve; });
  });
  const outcome = hooks.settle(run(verb, undefined, [what, sink]));
  const ended = () => { done = true; wake?.(); };
  outcome.then(ended, ended);
  try {
    for (;;) {
      while (lines.length > 0) yield JSON.parse(lines.shift());
      taken?.();
      if (done) break;
      await new Promise((resolve) => { wake = resolve; });
    }
    await outcome;
  } finally {
    taken?.(false);
  }
}

function auditRead(id) { return auditLines('auditRead', id); }

function auditReadFile(path) { return auditLines('auditReadFile', path); }

async function auditVerify(id) { return run('auditVerify', undefined, [id]); }

async function auditVerifyFile(path) { return run('auditVerifyFile', undefined, [path]); }

async function auditLogs() { return (await run('auditLogs', undefined, [])).items; }

async function forget(id) { return run('forget', undefined, [id]); }
async function auditRemove(id) { return run('auditRemove', undefined, [id]); }

async function asideList() { return (await run('asideList', undefined, [])).items; }

async function asideRestore(id, options) {
  return run('asideRestore', undefined, [id, packAsideRestoreOptions(options, 'aside_restore')]);
}

async function asideRemove(id) { return run('asideRemove', undefined, [id]); }

module.exports = {
  version, setLog, sandboxes, destroyId, doctor, auditRead, auditReadFile, auditVerify, auditVerifyFile,
  auditLogs, auditRemove, forget, asideList, asideRestore, asideRemove,
};
