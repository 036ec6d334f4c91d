// support.mjs: what tests share.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** An empty directory that is removed after the test. */
export function workspace(t) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'caisson-node-'));
  t.after(() => fs.rmSync(dir, { recursive: true, force: true }));
  return dir;
}
