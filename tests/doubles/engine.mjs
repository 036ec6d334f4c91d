// engine.mjs: a container engine of its own for one command: a real dockerd, and an image.
//
//   node engine.mjs COMMAND ARGS...
//
// The engine has its own data, its own socket, and mount and process namespaces of its own: when
// its first process ends, everything of it ends, and nothing of it is seen by an engine that the
// machine may have. It has no bridge and writes no packet rule. The image is busybox with bash.
// COMMAND finds DOCKER_HOST and CAISSON_DOCKER_IMAGE set. Without root or dockerd: a skip that
// says why, which CSN_MUST_WORK turns into a failure for root.
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

const START_MS = 60000;
const END_MS = 30000;
const nap = (ms) => new Promise((go) => setTimeout(go, ms));
const IMAGE = 'caisson-test:latest';
const command = process.argv.slice(2);

function skip(why) {
  const must = process.env.CSN_MUST_WORK && process.getuid() === 0;
  console.log(must ? `1..1\nnot ok 1 - engine: ${why}` : `1..0 # SKIP ${why}`);
  process.exit(must ? 1 : 0);
}

const has = (name) => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0;
if (process.getuid() !== 0) skip('only root can start a container engine');
for (const name of ['dockerd', 'busybox', 'unshare', 'setpriv', 'tar']) {
  if (!has(name)) skip(`${name} is not installed (Debian: docker.io busybox-static util-linux tar)`);
}

const dir = fs.mkdtempSync('/tmp/caisson-engine-');
const socket = path.join(dir, 's');
const group = `/caisson-test-${process.pid}`;
const log = fs.openSync(path.join(dir, 'log'), 'w');

function ask(method, url, data, type = 'application/json') {
  return new Promise((resolve, reject) => {
    const req = http.request({ socketPath: socket, method, path: url, headers: { 'Content-Type': type } }, (res) => {
      const parts = [];
      res.on('data', (part) => parts.push(part));
      res.on('end', () => resolve({ status: res.statusCode, text: Buffer.concat(parts).toString() }));
      res.on('error', reject);
    });
    req.on('error', reject);
    req.end(data);
  });
}

function start() {
  fs.writeFileSync(path.join(dir, 'config'), '{}');
  const args = ['--pdeathsig', 'KILL', 'unshare', '--mount', '--propagation', 'private', '--pid', '--fork',
    '--kill-child', '--mount-proc', 'docker-init', '--', 'dockerd', '--config-file', path.join(dir, 'config'),
    '--host', `unix://${socket}`, '--data-root', path.join(dir, 'data'), '--exec-root', path.join(dir, 'exec'),
    '--pidfile', path.join(dir, 'pid'), '--bridge=none', '--iptables=false', '--ip6tables=false',
    `--cgroup-parent=${group}`, '--log-level=warn'];
  return spawn('setpriv', args, { stdio: ['ignore', log, log], detached: true });
}

async function answers(engine) {
  for (const end = Date.now() + START_MS; Date.now() < end; await nap(50)) {
    if (engine.exitCode !== null) return false;
    try {
      if ((await ask('GET', '/_ping')).status === 200) return true;
    } catch { /* not yet */ }
  }
  return false;
}

// A program and the libraries it is linked with, at the same places as here.
function install(root, program) {
  const file = fs.realpathSync(spawnSync('sh', ['-c', `command -v ${program}`]).stdout.toString().trim());
  const libraries = spawnSync('ldd', [file]).stdout.toString().match(/\/[^ )]+/g) ?? [];
  for (const from of [file, ...libraries]) {
    const to = path.join(root, from === file ? `/bin/${program}` : from);
    fs.mkdirSync(path.dirname(to), { recursive: true });
    fs.copyFileSync(from, to);
  }
}

async function makeImage() {
  const root = path.join(dir, 'root');
  for (const sub of ['bin', 'tmp', 'etc', 'home/box', 'work', 'dev', 'proc', 'sys']) fs.mkdirSync(path.join(root, sub), { recursive: true });
  fs.chmodSync(path.join(root, 'tmp'), 0o1777);
  fs.writeFileSync(path.join(root, 'etc/passwd'), 'root:x:0:0:root:/home/box:/bin/sh\nagent:x:1000:1000::/work:/bin/sh\n');
  fs.writeFileSync(path.join(root, 'etc/group'), 'root:x:0:\nagent:x:1000:\n');
  install(root, 'busybox');
  for (const name of spawnSync('busybox', ['--list']).stdout.toString().split('\n')) {
    if (name && name !== 'busybox') fs.symlinkSync('busybox', path.join(root, 'bin', name));
  }
  for (const name of ['bash', 'script']) {
    fs.rmSync(path.join(root, 'bin', name), { force: true });
    install(root, name);
  }
  const tar = spawnSync('tar', ['-C', root, '-c', '.'], { maxBuffer: 1 << 28 }).stdout;
  const [repo, tag] = IMAGE.split(':');
  const made = await ask('POST', `/images/create?fromSrc=-&repo=${repo}&tag=${tag}&changes=WORKDIR%20/work&changes=ENV%20PATH%3D/bin`, tar, 'application/x-tar');
  if (made.status !== 200 || made.text.includes('"error"')) throw new Error(`no image: ${made.text}`);
}

// What the kernel keeps of control groups; everything else went with the namespaces.
function removeGroups() {
  const walk = (at) => {
    for (const e of fs.readdirSync(at, { withFileTypes: true })) if (e.isDirectory()) walk(path.join(at, e.name));
    fs.rmdirSync(at);
  };
  for (const top of ['', ...fs.readdirSync('/sys/fs/cgroup')]) {
    const at = path.join('/sys/fs/cgroup', top, group);
    if (fs.existsSync(at)) try { walk(at); } catch (e) { console.error(`engine: ${e.message}`); }
  }
}

const ended = (child) => new Promise((resolve) => (child.exitCode !== null || child.signalCode ? resolve() : child.on('exit', resolve)));

const list = async () => JSON.parse((await ask('GET', '/containers/json?all=true')).text);

// Containers whose owner has ended take a moment; one that takes longer is a leak, and a failure.
async function stop(engine) {
  try {
    for (const end = Date.now() + END_MS; Date.now() < end && (await list()).length > 0;) await nap(100);
    for (const c of await list()) {
      status = 1;
      console.error(`engine: left behind: ${c.Names} ${c.Status}`);
      await ask('DELETE', `/containers/${c.Id}?force=true`);
    }
  } catch { /* it is gone already */ }
  engine.kill('SIGKILL');
  await ended(engine);
  removeGroups();
  if (!process.env.CSN_TEST_KEEP) fs.rmSync(dir, { recursive: true, force: true, maxRetries: 20 });
}

const engine = start();
let status = 1;
if (await answers(engine)) {
  try {
    await makeImage();
    const child = spawn(command[0], command.slice(1), {
      stdio: 'inherit',
      env: { ...process.env, DOCKER_HOST: `unix://${socket}`, CAISSON_DOCKER_IMAGE: IMAGE, CSN_TEST_ENGINE: dir },
    });
    for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(name, () => child.kill(name));
    status = await new Promise((resolve) => child.on('exit', (code) => resolve(code ?? 1)));
  } catch (e) {
    console.log(`1..1\nnot ok 1 - engine: ${e.message}`);
  }
} else {
  console.error(fs.readFileSync(path.join(dir, 'log')).toString());
  console.log('1..1\nnot ok 1 - dockerd does not start');
}
await stop(engine);
process.exit(status);
