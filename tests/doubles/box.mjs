// box.mjs: a place where a double runs what it is asked to: a jail, through the caisson program.
//
// Each box has a detached jail on a directory of the host. The program keeps its records in a
// directory of this double's own, so that no other sandbox of the user is seen or touched.
import { spawn, spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

export const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'dbl-'));
export const program = process.env.CSN_DOUBLE_CAISSON ?? 'caisson';

// In the jail: runs the command and notes the signal that ended it, if one did.
const watcher = `my $note = shift; my $s = system { $ARGV[0] } @ARGV;
if ($s == -1) { print STDERR "$ARGV[0]: $!\\n"; exit 127 }
if ($s & 127) { open my $f, ">", $note; print $f $s & 127; close $f; exit 128 + ($s & 127) }
exit $s >> 8`;

export function environment() {
  const env = { ...process.env, XDG_STATE_HOME: `${scratch}/s`, XDG_RUNTIME_DIR: `${scratch}/r` };
  for (const name of ['CAISSON_BACKEND', 'VERCEL', 'E2B_API_KEY', 'E2B_API_URL', 'E2B_SANDBOX_URL', 'VERCEL_TOKEN', 'CAISSON_VERCEL_URL',
    'DAGGER_SESSION_PORT', 'DAGGER_SESSION_TOKEN']) delete env[name];
  return env;
}
for (const d of ['s', 'r']) fs.mkdirSync(`${scratch}/${d}`, { mode: 0o700 });
const env = environment();

export class Failed extends Error {
  constructor(code, message) {
    super(message);
    this.code = code; // caisson's word: not_found, wrong_type ...
  }
}

function run(args, input) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, stdio: [input ? 'pipe' : 'ignore', 'pipe', 'pipe'] });
    const out = [], err = [];
    child.stdout.on('data', (d) => out.push(d));
    child.stderr.on('data', (d) => err.push(d));
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, out: Buffer.concat(out), err: Buffer.concat(err).toString() }));
    if (input) {
      child.stdin.on('error', () => {});
      input.pipe ? input.pipe(child.stdin) : child.stdin.end(input);
    }
  });
}

// Jails being made and destroyed, for endAll: the records they need lie in the scratch directory.
const underWay = new Set();
let ending = false;

function awaited(promise) {
  const settled = promise.then(() => {}, () => {}).then(() => underWay.delete(settled));
  underWay.add(settled);
  return promise;
}

export class Box {
  static live = new Set();

  // workspace: a directory of the host that stays; without one the box has its own.
  static make(options) {
    return awaited(Box.#make(options));
  }

  static async #make({ workspace } = {}) {
    if (ending) throw new Failed('unavailable', 'this double is ending');
    const box = new Box();
    box.own = !workspace;
    box.dir = workspace ?? fs.mkdtempSync(`${scratch}/w`);
    if (box.own) fs.chmodSync(box.dir, 0o755);
    const r = await run(['create', '--backend', 'jail', '--workspace', box.dir, '--home', box.dir]);
    if (r.code !== 0) throw new Failed('unavailable', r.err.trim());
    box.id = r.out.toString().trim();
    Box.live.add(box);
    return box;
  }

  // A command; stdin is a pipe or nothing. Its exit status is the program's: 128 + n for a signal,
  // which signalOf tells from an exit with that number.
  spawn(cmd, args, { cwd, envs = {}, stdin = false } = {}) {
    const line = ['exec', this.id, '--timeout', 'none'];
    if (stdin) line.push('--stdin');
    if (cwd) line.push('--cwd', cwd);
    for (const [k, v] of Object.entries(envs)) line.push('--env', `${k}=${v}`);
    const note = `/tmp/.box-${crypto.randomUUID()}`;
    const child = spawn(program, [...line, '--', 'perl', '-e', watcher, note, cmd, ...args], { env, stdio: [stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'] });
    child.note = note;
    return child;
  }

  // The number of the signal that ended a command of spawn, 0 for none.
  async signalOf(child, code) {
    if (code <= 128 || code >= 192) return 0;
    const r = await run(['cat', this.id, '--', child.note]);
    return r.code === 0 ? Number(r.out.toString()) : 0;
  }

  async call(verb, ...args) {
    const r = await run([verb, this.id, '--json', ...args]);
    const text = r.out.toString().trim();
    const value = text ? JSON.parse(text) : undefined;
    if (r.code !== 0) throw new Failed(value?.error?.code ?? 'io', value?.error?.message ?? r.err.trim());
    return value;
  }

  stat(file) {
    return this.call('stat', '--', file);
  }

  async write(file, input) {
    const r = await run(['write', this.id, '--json', '--', file], input);
    const value = JSON.parse(r.out.toString());
    if (r.code !== 0) throw new Failed(value.error.code, value.error.message);
    return value;
  }

  cat(file) {
    return spawn(program, ['cat', this.id, '--', file], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  }

  watch(dir, recursive) {
    const args = ['watch', this.id, '--json', ...(recursive ? ['-r'] : []), '--', dir];
    return spawn(program, args, { env, stdio: ['ignore', 'pipe', 'ignore'] });
  }

  destroy() {
    return awaited(this.#destroy());
  }

  async #destroy() {
    if (!Box.live.delete(this)) return;
    await run(['destroy', this.id]);
    if (this.own) fs.rmSync(this.dir, { recursive: true, force: true });
  }
}

export async function endAll() {
  ending = true;
  while (underWay.size) await Promise.all(underWay);
  const ids = [...Box.live].map((b) => b.id);
  if (ids.length) spawnSync(program, ['destroy', ...ids], { env, stdio: 'ignore' });
  fs.rmSync(scratch, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
}
