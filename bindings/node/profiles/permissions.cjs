'use strict';
// permissions.cjs: a Sandbox with a home and session permissions: read, write and exec.
//
// It is a jail: commands see the home and the granted directories, nothing else of the user.
// Symbolic links are refused by read and write.

const path = require('node:path');
const { CaissonError } = require('../lib/index.cjs');
const { LazySandbox } = require('./lazy.cjs');

/** The home is writable; the working directory is in it or is granted. */
function optionsOf(homeDir, { workingDir, writeDirs = [], readDirs = [] }, { allowedDomains, packageManagers, ...network }) {
  const write = [homeDir, ...writeDirs].filter((dir) => dir !== workingDir);
  const rules = { ...network, allow: allowedDomains, packages: packageManagers };
  const hasNetwork = Object.values(rules).some((v) => v !== undefined);
  return {
    backend: 'jail', workspace: workingDir, home: homeDir, write: [...new Set(write)], read: [...new Set(readDirs)],
    nofollow: true, network: hasNetwork ? rules : undefined,
  };
}

class Sandbox {
  #lazy;

  /** network: the hosts that exec may name in allowedDomains and packageManagers. */
  constructor({ homeDir, permissions, network = {}, options = {} }) {
    this.homeDir = path.resolve(homeDir);
    this.workingDir = path.resolve(permissions.workingDir);
    this.permissions = permissions;
    this.#lazy = new LazySandbox({ ...optionsOf(this.homeDir, { ...permissions, workingDir: this.workingDir }, network), ...options });
  }

  async read({ path: file, offset, limit }) {
    const sandbox = await this.#lazy.get();
    const { isImage, content, bytes, mimeType, totalLines, outputLines, truncated, truncatedBy } = await sandbox.read(file, { offset, limit });
    if (isImage) return { type: 'image', content, bytes, mimeType };
    return { type: 'text', content, bytes, totalLines, outputLines, truncated, truncatedBy };
  }

  async write({ path: file, content, append = false }) {
    if (!path.isAbsolute(file) && !file.startsWith('~/')) {
      throw new CaissonError('invalid', `write: '${file}' is not an absolute path`, { op: 'write', path: file });
    }
    const { bytes, resolvedPath } = await (await this.#lazy.get()).write(file, content, { append });
    return { bytes, resolvedPath };
  }

  async exec({ command, cwd, timeoutMs, env, packageManagers, allowedDomains }) {
    const sandbox = await this.#lazy.get();
    const result = await sandbox.sh(command, { cwd, timeoutMs, env, packageManagers, allowedDomains });
    const { stdout, stderr, exitCode, signal, failed } = result;
    return { stdout, stderr, exitCode, signal, failed };
  }

  async close() { await this.#lazy.close(); }

  async [Symbol.asyncDispose]() { await this.close(); }
}

module.exports = { Sandbox };
