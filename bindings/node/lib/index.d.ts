// index.d.ts: the classes and functions of the package. Types of options and results are in
// generated.d.ts.
import { Readable, Writable } from 'node:stream';
import {
  AsideEntry, AsideRestoreOptions, AuditLog, AuditReport, CleanupOptions, Code, CommitOptions, CommitResult, Denial,
  DeleteOptions, DiffOptions, DiffResult, DoctorResult, EditItem, EditOptions, EditResult, ExecOptions, ExecResult,
  ExportOptions, FileContent, FileInfo, FileList, GrepOptions, GrepResult, LogChunk, MkdirOptions, NetworkInfo,
  NetworkRules, Operation, Path, ProcessInfo, ReadBytesOptions, ReadOptions, ReadResult as ReadFields, SandboxEntry,
  SandboxInfo, SandboxOptions, SnapshotEntry, SnapshotResult, StartOptions, StatOptions, GlobOptions, TransferOptions, Verdict,
  WatchEvent, WatchOptions, WriteManyOptions, WriteOptions, WriteResult,
} from './generated.js';

export * from './generated.js';

/** Content: text, or bytes. */
export type Data = string | Uint8Array;
/** Content in parts. */
export type Source = Data | Iterable<Data> | AsyncIterable<Data>;

export interface TextRead extends Omit<ReadFields, 'isImage' | 'content'> {
  isImage: false;
  content: string;
}
export interface ImageRead extends Omit<ReadFields, 'isImage' | 'content' | 'mimeType'> {
  isImage: true;
  content: Buffer;
  mimeType: string;
}
/** What read() returns: lines of text, or an image. */
export type FileRead = TextRead | ImageRead;

/** Why a call failed. With the name AbortError, an AbortSignal ended it. */
export class CaissonError extends Error {
  constructor(code: Code, message: string, more?: Partial<Pick<CaissonError, 'op' | 'path' | 'hint' | 'errno' | 'denial' | 'cause'>>);
  code: Code;
  op: string | null;
  path: string | null;
  hint: string | null;
  /** 0 when no system call failed. */
  errno: number;
  denial: Denial | null;
  /** AbortError of a command: what it had done until then. */
  result?: ExecResult;
}

export interface Waiting {
  timeoutMs?: number;
  signal?: AbortSignal;
}

export interface OutputChunk {
  stream: 'stdout' | 'stderr';
  data: Buffer;
  /** The same as text; a character that is cut by the end of a chunk comes with the next one. */
  text: string;
}

/** Output of a running command. Leaving the loop early ends the command. */
export interface ExecStream extends AsyncIterableIterator<OutputChunk> {
  /** The result. Output that was not read is dropped, so call it after the loop. */
  result(): Promise<ExecResult>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface EndedProcess extends ProcessInfo {
  /** Protected files that it made, and that were moved away. */
  denials: Denial[];
}

export class Process {
  private constructor();
  readonly pid: number;
  readonly sandbox: Sandbox;
  /** Output from byte `offset` on; waits up to `waitMs` for some. */
  logs(options?: { stream?: 'stdout' | 'stderr'; offset?: number; waitMs?: number; signal?: AbortSignal }): Promise<LogChunk>;
  /** All output of one stream until it ends. */
  stream(options?: { stream?: 'stdout' | 'stderr'; offset?: number; signal?: AbortSignal }): AsyncGenerator<Buffer, void>;
  /** Waits until it has ended; by default without a limit. */
  wait(options?: Waiting): Promise<EndedProcess>;
  /** SIGKILL and SIGTERM go to the whole tree. */
  signal(signal?: NodeJS.Signals | number): Promise<void>;
  write(data: Data, options?: Waiting): Promise<void>;
  closeStdin(): Promise<void>;
  resize(rows: number, cols: number): Promise<void>;
  /** Ends this handle, not the process (unless it was started with `tied`). */
  release(): void;
  [Symbol.dispose](): void;
}

/** Changes below a directory. Ends with the sandbox and with release(). */
export class Watch implements AsyncIterableIterator<WatchEvent> {
  private constructor();
  readonly sandbox: Sandbox;
  next(): Promise<IteratorResult<WatchEvent, undefined>>;
  return(value?: undefined): Promise<IteratorResult<WatchEvent, undefined>>;
  /** The next event, or undefined if none comes in `timeoutMs` (default 0). */
  poll(options?: Waiting): Promise<WatchEvent | undefined>;
  release(): void;
  [Symbol.asyncIterator](): this;
  [Symbol.dispose](): void;
  [Symbol.asyncDispose](): Promise<void>;
}

export class Sandbox {
  private constructor();
  static open(options?: SandboxOptions, more?: { signal?: AbortSignal }): Promise<Sandbox>;
  static connect(id: string, more?: { signal?: AbortSignal }): Promise<Sandbox>;
  readonly id: string;

  /** Ends running calls and frees the handle. A sandbox that is not detached is destroyed. Resolves with denials that
   * belong to no result. */
  close(): Promise<Denial[]>;
  [Symbol.asyncDispose](): Promise<void>;
  /** Ends every process and removes the sandbox. */
  destroy(): Promise<Denial[]>;
  /** As destroy, but the next call opens a new sandbox with the same id. */
  reset(): Promise<void>;
  info(): Promise<SandboxInfo>;
  setWorkdir(path: Path): Promise<void>;
  /** Removes everything in the workspace. */
  cleanup(options?: CleanupOptions): Promise<void>;
  /** Sets the end of the sandbox to `ms` milliseconds from now. */
  extend(ms: number): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;

  /** Runs argv unchanged, without a shell. A non-zero exit code is a result, not an error. */
  exec(argv: readonly string[], options?: ExecOptions): Promise<ExecResult>;
  /** Runs a command line with bash, or sh if there is no bash. */
  sh(command: string, options?: ExecOptions): Promise<ExecResult>;
  /** Runs argv, or a command line, and iterates over its output. */
  stream(command: string | readonly string[], options?: Omit<ExecOptions, 'onOutput'>): ExecStream;
  start(argv: readonly string[], options?: StartOptions): Promise<Process>;
  startSh(command: string, options?: StartOptions): Promise<Process>;
  /** A handle of an existing process. */
  process(pid: number): Promise<Process>;
  processes(): Promise<ProcessInfo[]>;
  /** Waits until a process listens on this port of the sandbox's loopback; 30 s by default. */
  waitPort(port: number, options?: Waiting): Promise<void>;
  /** Waits until the log of a background process contains the text; 30 s by default. */
  waitLog(text: string, options?: Waiting): Promise<void>;

  read(path: Path, options?: ReadOptions): Promise<FileRead>;
  readBytes(path: Path, options?: ReadBytesOptions): Promise<Buffer>;
  readStream(path: Path, options?: ReadBytesOptions): Readable;
  write(path: Path, data: Data, options?: WriteOptions): Promise<WriteResult>;
  writeFrom(path: Path, source: Source, options?: WriteOptions): Promise<WriteResult>;
  /** `finish` comes when the file is in place. */
  writeStream(path: Path, options?: WriteOptions): Writable;
  /** Writes all files or none. */
  writeMany(files: Record<string, Data> | FileContent[], options?: WriteManyOptions): Promise<void>;
  /** Writes the files of a tar stream below `path`, all or none. */
  writeTar(path: Path | null | undefined, source: Source, options?: WriteManyOptions): Promise<void>;
  /** Applies the edits in order, all or none. */
  edit(path: Path, edits: EditItem | EditItem[], options?: EditOptions): Promise<EditResult>;
  delete(path: Path, options?: DeleteOptions): Promise<void>;
  mkdir(path: Path, options?: MkdirOptions): Promise<void>;
  rename(from: Path, to: Path, options?: MkdirOptions): Promise<void>;
  stat(path: Path, options?: StatOptions): Promise<FileInfo>;
  list(path?: Path, options?: StatOptions): Promise<FileList>;
  /** Patterns have ** * ? [..] {a,b} and match dotfiles; results are relative to `path`. */
  glob(pattern: string, path?: Path, options?: GlobOptions): Promise<FileList>;
  /** Literal unless `regex`. */
  grep(pattern: string | Uint8Array, options?: GrepOptions): Promise<GrepResult>;
  watch(path?: Path, options?: WatchOptions): Promise<Watch>;

  /** The network rules, and network events from number `since` on. */
  network(since?: number): Promise<NetworkInfo>;
  /** Replaces all network rules. */
  networkSet(rules: NetworkRules): Promise<void>;
  /** Copies a directory of the sandbox to the host. */
  export(path: Path, hostDir: Path, options?: ExportOptions): Promise<void>;
  /** Copies a directory of the host into the sandbox. */
  import(hostDir: Path, path: Path, options?: TransferOptions): Promise<void>;
  exportTar(path?: Path, options?: ExportOptions): Readable;
  importTar(path: Path, source: Source, options?: TransferOptions): Promise<void>;
  /** Checks an operation on a path, command or host against the policy, without doing it. */
  wouldAllow(op: Operation, target: Path): Promise<Verdict>;

  snapshot(): Promise<SnapshotResult>;
  /** Saves the present files under a name; null: one is made up. */
  snapshotAs(name: string | null): Promise<SnapshotResult>;
  snapshots(): Promise<SnapshotEntry[]>;
  /** Without a snapshot: the newest of a copy-on-write workspace. */
  rollback(snapshot?: string): Promise<void>;
  /** Opens another sandbox with the same files and configuration. */
  fork(name?: string): Promise<Sandbox>;
  undo(): Promise<void>;
  discard(): Promise<void>;
  diff(options?: DiffOptions): Promise<DiffResult>;
  /** Writes changes to the host's directory. With conflicts nothing is written: check `written`. */
  commit(options?: CommitOptions): Promise<CommitResult>;
}

export function open(options?: SandboxOptions, more?: { signal?: AbortSignal }): Promise<Sandbox>;
/** Opens a handle by id or name. */
export function connect(id: string, more?: { signal?: AbortSignal }): Promise<Sandbox>;
export function version(): string;
/** Receives debug lines of the library; undefined: none. */
export function setLog(fn: ((line: string) => void) | undefined): void;
/** The detached sandboxes of this user. */
export function sandboxes(): Promise<SandboxEntry[]>;
/** Destroys a sandbox by id or name. Resolves with denials that belong to no result. */
export function destroyId(id: string): Promise<Denial[]>;
/** Which parts of the backend jail work on this host. */
export function doctor(workspace?: Path): Promise<DoctorResult>;
/** The lines of a sandbox's audit log. */
export function auditRead(id: string): AsyncGenerator<Record<string, unknown>, void>;
export function auditReadFile(path: Path): AsyncGenerator<Record<string, unknown>, void>;
export function auditVerify(id: string): Promise<AuditReport>;
export function auditVerifyFile(path: Path): Promise<AuditReport>;
export function auditLogs(): Promise<AuditLog[]>;
/** Removes the record of a sandbox in the state "unknown", and nothing else. */
export function forget(id: string): Promise<void>;
export function auditRemove(id: string): Promise<void>;
/** Protected files that were moved out of workspaces. */
export function asideList(): Promise<AsideEntry[]>;
export function asideRestore(id: string, options?: AsideRestoreOptions): Promise<void>;
export function asideRemove(id: string): Promise<void>;

/** One command for a backend of one's own. */
export interface BackendRequest {
  argv: string[];
  /** Added to the backend's own environment. */
  env: Record<string, string>;
  cwd: string | null;
  /** The command line, when argv runs a shell. */
  command: string | null;
  session: string | null;
  /** Both streams in one, in true order. */
  merge: boolean;
  stdin: AsyncIterable<Buffer> | null;
  /** Until the deadline; null: none. */
  timeoutMs: number | null;
  /** Fires at the deadline and when the call is cancelled: end the command with all its processes. */
  signal: AbortSignal;
  /** Passes output on. Resolves with false when no more is wanted. */
  write(data: Data, stream?: 'stdout' | 'stderr'): Promise<boolean>;
}

export interface BackendEnd {
  exitCode?: number | null;
  signal?: NodeJS.Signals | number | null;
  /** Output that was not written before. */
  stdout?: Data;
  stderr?: Data;
  /** The command could not be started: why. */
  notStarted?: string;
}

export interface Backend {
  /** For open({ backend: name }). */
  name: string;
  /** Runs one command to its end. An error means that the backend itself failed. */
  exec(request: BackendRequest): Promise<BackendEnd | number>;
}

/** Makes a backend available in this process. Every file verb is derived from its exec. */
export function registerBackend(backend: Backend): void;
