// types.test.ts: is compiled by tsc --strict, not run.
import { open, connect, registerBackend, CaissonError, auditRead, type ExecResult, type SandboxOptions, type Sandbox } from 'caisson';
import { BaseSandbox, LocalSandbox, type ExecuteResponse, type SandboxBackendProtocol } from 'caisson/profiles/deepagents';
import { createLocalSandbox, type Sandbox as Kit } from 'caisson/profiles/bashkit';
import { getSandboxExecutor, type SandboxExecutor } from 'caisson/profiles/executor';
import { Sandbox as Permitted } from 'caisson/profiles/permissions';

const options: SandboxOptions = { backend: 'jail', workspace: '/w', cow: true, limits: { memory: '1G' }, network: { allow: ['example.org'] }, rules: [{ op: 'read', effect: 'deny', path: 'x' }] };

async function all(sb: Sandbox): Promise<void> {
  const r: ExecResult = await sb.exec(['true'], { timeoutMs: Infinity, keep: 'tail', env: { A: 'b' }, signal: AbortSignal.timeout(1), onOutput: async (s, d) => { s.length; d.length; } });
  const code: number | null = r.exitCode;
  const bytes: Buffer = r.stdoutBytes;
  for await (const chunk of sb.stream('ls')) { const s: 'stdout' | 'stderr' = chunk.stream; void s; }
  for await (const event of await sb.watch('.', { recursive: true })) { if (event.kind === 'create') break; }
  const file = await sb.read('f', { numbers: true });
  const content: string | Buffer = file.isImage ? file.content : file.content.toUpperCase();
  await sb.write(Buffer.from('f'), new Uint8Array(1), { append: true });
  await sb.edit('f', [{ oldString: 'a', newString: 'b', replaceAll: true }]);
  await sb.writeMany({ a: 'x', b: Buffer.from('y') });
  const when: bigint = (await sb.stat('f')).modifiedNs;
  const { changes, conflicts } = await sb.commit({ dryRun: true, resolved: [{ path: 'f', data: 'x' }] });
  const outcome: 'none' | 'applied' | 'merged' | 'same' | 'conflict' | 'kept' | 'held' = changes[0].outcome;
  const process = await sb.start(['x'], { stdin: true, tied: true });
  await process.wait({ timeoutMs: 5 });
  sb.readStream('f').pipe(sb.writeStream('g'));
  for await (const line of auditRead(sb.id)) void line;
  void [code, bytes, content, when, outcome, conflicts];
  // @ts-expect-error: an option that does not exist
  await sb.exec(['true'], { timeout: 1 });
  // @ts-expect-error: argv is a list
  await sb.exec('true');
  // @ts-expect-error: made by open()
  new (sb.constructor as typeof Sandbox)();
}

class Own extends BaseSandbox {
  readonly id = 'own';
  async execute(command: string): Promise<ExecuteResponse> { return { output: command, exitCode: 0, truncated: false }; }
}

async function main(): Promise<void> {
  await using sb = await open(options);
  await all(sb);
  await all(await connect('name'));
  registerBackend({ name: 'x', async exec(request) { await request.write('x'); return { exitCode: 0 }; } });
  const protocol: SandboxBackendProtocol[] = [new Own(), new LocalSandbox({ cwd: '.' })];
  const kit: Kit = createLocalSandbox({ cwd: '.' });
  const executor: SandboxExecutor = getSandboxExecutor();
  const read = await new Permitted({ homeDir: '/h', permissions: { workingDir: '/h/w' } }).read({ path: 'x' });
  if (read.type === 'image') read.content.byteLength; else read.content.length;
  try {
    await sb.exec(['false']);
  } catch (error) {
    if (error instanceof CaissonError && error.code === 'denied') console.log(error.denial?.hint);
  }
  void [protocol, kit, executor];
}
void main();
