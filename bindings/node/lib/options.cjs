'use strict';
// options.cjs: the options of a sandbox as the JSON of caisson-policy(5).
//
// The library checks them: a key that it does not know is passed on as it was typed, so that the
// message names it.

const { OPTIONS } = require('./generated.cjs');

const plain = (value) => (value === Infinity ? 'none' : value);

function rename(object, names) {
  const out = {};
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue;
    const inner = Object.hasOwn(OPTIONS, key) && key !== '' && value !== null && typeof value === 'object';
    out[Object.hasOwn(names, key) ? names[key] : key] = inner ? rename(value, OPTIONS[key]) : plain(value);
  }
  return out;
}

const optionsToJson = (options = {}) => JSON.stringify(rename(options, OPTIONS['']));

module.exports = { optionsToJson };
