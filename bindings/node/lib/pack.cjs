'use strict';
// pack.cjs: what generated.cjs needs to turn options into values for the addon.

const { CaissonError } = require('./error.cjs');

/** Refuses an option that the verb does not have, by its name. */
function checkKeys(options, keys, verb) {
  if (typeof options !== 'object') throw new CaissonError('invalid', `${verb}: options must be an object`, { op: verb });
  for (const key in options) {
    if (keys.has(key) || options[key] === undefined) continue;
    const known = [...keys].join(', ');
    throw new CaissonError('invalid', `${verb}: unknown option '${key}'`, { op: verb, hint: `options are ${known}` });
  }
}

const KEEP = { head: 0, tail: 2, both: 4 };

function keepFlag(keep, verb) {
  if (keep === undefined) return 0;
  if (Object.hasOwn(KEEP, keep)) return KEEP[keep];
  throw new CaissonError('invalid', `${verb}: keep: '${keep}' is not head, tail or both`, { op: verb });
}

const bytesOf = (text) => (typeof text === 'string' ? Buffer.from(text) : text);

module.exports = { checkKeys, keepFlag, bytesOf };
