// deepagents.d.cts: types of deepagents.cjs.
import { Sandbox, SandboxOptions } from '../lib/index.js';

export interface ExecuteResponse {
  /** Combined stdout and stderr output */
  output: string;
  /** null: unknown */
  exitCode: number | null;
  truncated: boolean;
}
export interface FileInfo { path: string; is_dir: boolean; size: number; modified_at: string }
export interface GrepMatch { path: string; line: number; text: string }
export interface FileData { content: string[]; created_at: string; modified_at: string }
export interface WriteResult { error?: string; path?: string }
export interface EditResult { error?: string; path?: string; occurrences?: number }

export interface BackendProtocol {
  lsInfo(path: string): Promise<FileInfo[]>;
  read(filePath: string, offset?: number, limit?: number): Promise<string>;
  readRaw(filePath: string): Promise<FileData>;
  write(filePath: string, content: string): Promise<WriteResult>;
  edit(filePath: string, oldString: string, newString: string, replaceAll?: boolean): Promise<EditResult>;
  grepRaw(pattern: string, path?: string, glob?: string | null): Promise<GrepMatch[] | string>;
  globInfo(pattern: string, path?: string): Promise<FileInfo[]>;
}
export interface SandboxBackendProtocol extends BackendProtocol {
  execute(command: string): Promise<ExecuteResponse>;
  readonly id: string;
}

/** A subclass has execute() and id; the file methods use only these. */
export abstract class BaseSandbox implements SandboxBackendProtocol {
  abstract execute(command: string): Promise<ExecuteResponse>;
  abstract readonly id: string;
  protected sandboxOptions(): SandboxOptions;
  protected sandbox(): Promise<Sandbox>;
  lsInfo(path: string): Promise<FileInfo[]>;
  read(filePath: string, offset?: number, limit?: number): Promise<string>;
  readRaw(filePath: string): Promise<FileData>;
  write(filePath: string, content: string): Promise<WriteResult>;
  edit(filePath: string, oldString: string, newString: string, replaceAll?: boolean): Promise<EditResult>;
  grepRaw(pattern: string, path?: string, glob?: string | null): Promise<GrepMatch[] | string>;
  globInfo(pattern: string, path?: string): Promise<FileInfo[]>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface LocalSandboxOptions {
  /** default: process.cwd() */
  cwd?: string;
  /** milliseconds; default 30000 */
  timeout?: number;
  env?: Record<string, string>;
}
export class LocalSandbox extends BaseSandbox {
  constructor(options?: LocalSandboxOptions);
  readonly id: string;
  execute(command: string): Promise<ExecuteResponse>;
}
