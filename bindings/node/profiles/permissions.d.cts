// permissions.d.cts: types of permissions.cjs.
import { SandboxOptions } from '../lib/index.js';

export type SessionPermissions = { workingDir: string; writeDirs?: string[]; readDirs?: string[] };
export type SandboxConfig = {
  /** Absolute path of the user's home: writable, and HOME of commands. */
  homeDir: string;
  permissions: SessionPermissions;
  /** Hosts that exec may name in allowedDomains and packageManagers. */
  network?: { allowedDomains?: string[]; packageManagers?: string[] };
  /** Further options of caisson. */
  options?: SandboxOptions;
};
export type SandboxReadArgs = { path: string; offset?: number; limit?: number };
export type SandboxReadResultText = {
  type: 'text';
  content: string;
  bytes: number;
  totalLines: number;
  outputLines: number;
  truncated: boolean;
  truncatedBy: 'lines' | 'bytes' | null;
};
export type SandboxReadResultImage = { type: 'image'; content: Buffer; bytes: number; mimeType: string };
export type SandboxReadResult = SandboxReadResultText | SandboxReadResultImage;
export type SandboxWriteArgs = { path: string; content: string; append?: boolean };
export type SandboxWriteResult = { bytes: number; resolvedPath: string };
export type SandboxExecArgs = {
  command: string;
  cwd?: string;
  timeoutMs?: number;
  env?: Record<string, string>;
  packageManagers?: string[];
  allowedDomains?: string[];
};
export type SandboxExecResult = { stdout: string; stderr: string; exitCode: number | null; signal: string | null; failed: boolean };

export class Sandbox {
  constructor(config: SandboxConfig);
  readonly homeDir: string;
  readonly workingDir: string;
  readonly permissions: SessionPermissions;
  read(args: SandboxReadArgs): Promise<SandboxReadResult>;
  write(args: SandboxWriteArgs): Promise<SandboxWriteResult>;
  exec(args: SandboxExecArgs): Promise<SandboxExecResult>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
