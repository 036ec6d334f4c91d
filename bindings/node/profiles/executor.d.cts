// executor.d.cts: types of executor.cjs.
import { Sandbox, SandboxOptions } from '../lib/index.js';

export interface CommandResult { stdout: string; stderr: string; exitCode: number }
export interface ExecuteOptions {
  cwd?: string;
  env?: Record<string, string>;
  /** milliseconds */
  timeout?: number;
  sudo?: boolean;
}
export interface SandboxExecutor {
  /** Without args the command is a command line. */
  execute(command: string, args?: string[], options?: ExecuteOptions): Promise<CommandResult>;
  writeFile(path: string, content: string | Buffer): Promise<void>;
  /** null: there is no such file */
  readFile(path: string): Promise<string | null>;
  listFiles(path?: string): Promise<string[]>;
  cleanup(): Promise<void>;
}
declare class Executor implements SandboxExecutor {
  sandbox(): Promise<Sandbox>;
  execute(command: string, args?: string[], options?: ExecuteOptions): Promise<CommandResult>;
  writeFile(path: string, content: string | Buffer): Promise<void>;
  readFile(path: string): Promise<string | null>;
  listFiles(path?: string): Promise<string[]>;
  cleanup(): Promise<void>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
export class LocalSandboxExecutor extends Executor {
  constructor(options?: { sandboxDir?: string; commands?: string[]; timeout?: number });
}
export class VercelSandboxExecutor extends Executor {
  constructor(options?: SandboxOptions);
}
export function getSandboxExecutor(): LocalSandboxExecutor | VercelSandboxExecutor;
