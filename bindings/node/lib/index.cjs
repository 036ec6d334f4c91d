'use strict';
// index.cjs: the package.

const { Sandbox } = require('./sandbox.cjs');

async function open(options, more) { return Sandbox.open(options, more); }

async function connect(id, more) { return Sandbox.connect(id, more); }

module.exports = {
  open,
  connect,
  Sandbox,
  Process: require('./process.cjs').Process,
  Watch: require('./watch.cjs').Watch,
  CaissonError: require('./error.cjs').CaissonError,
  STATUSES: require('./generated.cjs').STATUSES,
  ...require('./backend.cjs'),
  ...require('./records.cjs'),
};
