// bashkit.d.cts: types of bashkit.cjs.
import { Sandbox as CaissonSandbox, SandboxOptions } from '../lib/index.js';

export interface ExecOptions {
  /** milliseconds */
  timeout?: number;
  cwd?: string;
  /** With `session`: start a new shell first. */
  restart?: boolean;
}
export interface ExecResult {
  stdout: string;
  stderr: string;
  exitCode: number;
  durationMs: number;
  /** by a timeout */
  interrupted: boolean;
}
export interface Sandbox {
  exec(command: string, options?: ExecOptions): Promise<ExecResult>;
  readFile(path: string): Promise<string>;
  writeFile(path: string, content: string): Promise<void>;
  readDir(path: string): Promise<string[]>;
  fileExists(path: string): Promise<boolean>;
  isDirectory(path: string): Promise<boolean>;
  destroy(): Promise<void>;
  readonly id?: string;
  rgPath?: string;
}
export interface Config extends SandboxOptions {
  cwd?: string;
  /** All commands run in one shell that keeps its directory and variables. */
  session?: boolean;
}
export class BashKitSandbox implements Sandbox {
  constructor(options: SandboxOptions, more?: { session?: boolean });
  readonly id: string | undefined;
  rgPath: string | undefined;
  /** The sandbox of caisson. */
  sandbox(): Promise<CaissonSandbox>;
  exec(command: string, options?: ExecOptions): Promise<ExecResult>;
  readFile(path: string): Promise<string>;
  writeFile(path: string, content: string): Promise<void>;
  readDir(path: string): Promise<string[]>;
  fileExists(path: string): Promise<boolean>;
  isDirectory(path: string): Promise<boolean>;
  destroy(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
export function createSandbox(config?: Config): BashKitSandbox;
export function createLocalSandbox(config?: Config): BashKitSandbox;
export function createVercelSandbox(config?: Config): Promise<BashKitSandbox>;
export function createE2BSandbox(config?: Config): Promise<BashKitSandbox>;
export function ensureSandboxTools(sandbox: BashKitSandbox): Promise<void>;
