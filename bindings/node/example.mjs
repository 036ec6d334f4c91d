// example.mjs: an agent repairs a program in a jail. The model is a script, so that this runs
// without an account; a real one chooses the calls of `tools`.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { open } from 'caisson';

const project = fs.mkdtempSync(path.join(os.tmpdir(), 'caisson-example-'));
fs.writeFileSync(path.join(project, 'sum.py'), 'def add(a, b):\n    return a - b\n');
fs.writeFileSync(path.join(project, 'test_sum.py'), 'from sum import add\n\nassert add(2, 3) == 5, add(2, 3)\nprint("1 test passed")\n');

// Changes stay apart from the project until commit; there is no network.
const sandbox = await open({ workspace: project, backend: 'jail', cow: true, timeout: '60s' });

const tools = {
  read: async ({ path: file }) => (await sandbox.read(file, { numbers: true })).content,
  edit: async ({ path: file, oldString, newString }) => `${(await sandbox.edit(file, { oldString, newString })).occurrences} replaced`,
  async bash({ command }) {
    let text = '';
    const stream = sandbox.stream(command);
    for await (const chunk of stream) text += chunk.text;
    const { exitCode, denials } = await stream.result();
    for (const d of denials) text += `denied: ${d.op} ${d.target}; to allow it: ${d.hint}\n`;
    return `${text}exit code ${exitCode}`;
  },
};

const script = [
  { tool: 'bash', command: 'python3 -B test_sum.py 2>&1 | tail -n 1; exit ${PIPESTATUS[0]}' },
  { tool: 'read', path: 'sum.py' },
  { tool: 'edit', path: 'sum.py', oldString: 'a - b', newString: 'a + b' },
  { tool: 'bash', command: 'python3 -B test_sum.py' },
  { tool: 'bash', command: 'python3 -c "import urllib.request as u; u.urlopen(\'https://example.org\')" 2>/dev/null' },
];

const transcript = [];
for (const { tool, ...args } of script) {
  const result = await tools[tool](args);
  transcript.push(result);
  console.log(`> ${tool} ${JSON.stringify(args)}\n${result}\n`);
}

const { changes, patch } = await sandbox.diff({ patch: true });
console.log(patch);
const before = fs.readFileSync(path.join(project, 'sum.py'), 'utf8');
const { written, applied } = await sandbox.commit();
await sandbox.close();

const after = fs.readFileSync(path.join(project, 'sum.py'), 'utf8');
console.log(`committed ${applied} of ${changes.length} changes`);
fs.rmSync(project, { recursive: true });
const worked = [
  transcript[0].endsWith('exit code 1'), transcript[3] === '1 test passed\nexit code 0', transcript[4].includes('denied: net example.org'),
  before.includes('a - b'), after.includes('a + b'), written, changes.length === 1,
];
process.exitCode = worked.every(Boolean) ? 0 : 1;
