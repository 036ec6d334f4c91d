// bench.mjs: what the package adds to the library. bench builds bench.c, the same calls without Node.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { open } from './lib/index.mjs';

const [plain, backend = 'jail', rounds = '60', calls = '50'] = process.argv.slice(2);
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'caisson-bench-'));
fs.chmodSync(dir, 0o755);
fs.writeFileSync(path.join(dir, '4k'), Buffer.alloc(4096, 'x'.repeat(63) + '\n'));
const middle = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

/** Medians of calls: [all of it, without the time that the command itself took]. */
async function measure(count, call) {
  const all = [], around = [];
  for (let i = 0; i < count; i++) {
    const begin = process.hrtime.bigint();
    const { durationMs = 0 } = await call();
    all.push(Number(process.hrtime.bigint() - begin) / 1000);
    around.push(all[i] - durationMs * 1000);
  }
  return [middle(all), middle(around)];
}

/** Rounds of C and Node alternate, so that both meet the same machine. */
async function overhead(sandbox) {
  const c = spawn(plain, [dir, backend, calls], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = readline.createInterface({ input: c.stdout })[Symbol.asyncIterator]();
  const rows = { exec: [], 'exec without the command': [], read: [] };
  for (let i = 0; i < Number(rounds); i++) {
    c.stdin.write('\n');
    const [execC, aroundC, readC] = (await lines.next()).value.split(' ').map(Number);
    const [exec, around] = await measure(Number(calls), () => sandbox.exec(['true']));
    const [read] = await measure(Number(calls), () => sandbox.read('4k'));
    rows.exec.push([execC, exec]);
    rows['exec without the command'].push([aroundC, around]);
    rows.read.push([readC, read]);
  }
  c.stdin.end();
  for (const [what, pairs] of Object.entries(rows)) {
    const [withC, withNode] = [middle(pairs.map((p) => p[0])), middle(pairs.map((p) => p[1]))];
    const more = middle(pairs.map((p) => p[1] - p[0]));
    console.log(`${backend} ${what}: C ${withC.toFixed(1)} us, Node ${withNode.toFixed(1)} us, median of differences ${more.toFixed(1)} us`);
  }
}

async function parallel(sandbox, count) {
  await Promise.all(Array.from({ length: count }, () => sandbox.exec(['true'])));
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const begin = performance.now();
  await Promise.all(Array.from({ length: count }, () => sandbox.exec(['true'])));
  const took = performance.now() - begin;
  delay.disable();
  const ms = (ns) => Math.max(0, ns / 1e6 - 1).toFixed(2);
  console.log(`${backend} ${count} parallel execs: ${took.toFixed(0)} ms, event loop delay p50 ${ms(delay.percentile(50))} p99 ${ms(delay.percentile(99))} max ${ms(delay.max)} ms`);
}

const descriptors = () => fs.readdirSync('/proc/self/fd').length;

async function leaks(sandbox, count) {
  for (let i = 0; i < 500; i++) await sandbox.exec(['true']);
  globalThis.gc?.();
  const [rss, fds] = [process.memoryUsage().rss, descriptors()];
  for (let i = 0; i < count / 2; i++) {
    await sandbox.exec(['true']);
    await sandbox.read('4k');
  }
  globalThis.gc?.();
  const grown = (process.memoryUsage().rss - rss) / 1024;
  console.log(`${backend} ${count} calls: memory ${grown >= 0 ? '+' : ''}${grown.toFixed(0)} KiB, descriptors ${descriptors() - fds >= 0 ? '+' : ''}${descriptors() - fds}`);
}

const sandbox = await open({ backend, workspace: dir });
try {
  await overhead(sandbox);
  await parallel(sandbox, 200);
  await leaks(sandbox, 10000);
} finally {
  await sandbox.close();
  fs.rmSync(dir, { recursive: true });
}
