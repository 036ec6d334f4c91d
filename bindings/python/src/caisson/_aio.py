"""The asyncio classes: the methods of the others, on threads. Generated: do not edit.

Cancelling the task ends the command, or the wait, that it is in."""
from __future__ import annotations

from typing import List
import signal as signals
from collections.abc import (Callable, Iterable, Mapping, Sequence)
from typing import (Literal)
from ._callbacks import (Sink, Source)
from ._commands import (Keep, OnDenial, OnOutput)
from ._encode import (Data, Path)
from ._files import (Edit, FilesToWrite, OnProgress, OnProtected)
from ._results import (AsideEntry, AuditLog, AuditReport, CommitResult, Denial, DiffResult,
                       DoctorResult, EditResult, Event, ExecResult, FileInfo, FileList,
                       GrepResult, Info, LogChunk, NetResult, ProcessInfo, ReadResult,
                       SandboxEntry, SnapshotEntry, SnapshotResult, Verdict, WriteResult)
from ._sandbox import (Op)
from . import _functions
from ._bridge import (ProcessBase, SandboxBase, WatchBase, call, call_cancellable,
                      close_later, on_loop)


class AsyncProcess(ProcessBase):
    """Process, with coroutines for methods."""

    async def logs(self, stream: Literal['stdout', 'stderr'] = 'stdout', offset: int = 0,
                   wait_ms: int = 0) -> LogChunk:
        """Output from byte `offset` on. If there is none, waits up to wait_ms for it. A
        terminal has only stdout."""
        return await call_cancellable(lambda cancel: self._sync.logs(stream, offset, wait_ms,
                                                     cancel=cancel))

    async def wait(self, timeout_ms: int | None = None) -> ProcessInfo:
        """Waits for its end; TimedOut if it still runs then. `denials` of the result names the
        protected files that were moved to the quarantine."""
        return await call_cancellable(lambda cancel: self._sync.wait(timeout_ms, cancel=cancel))

    async def signal(self, signo: int = signals.SIGTERM) -> None:
        """Signals the process group; SIGKILL and SIGTERM go to the whole process tree."""
        await call(lambda: self._sync.signal(signo))

    async def write(self, content: Data, timeout_ms: int = 30000) -> None:
        """Writes to its standard input or terminal; TimedOut if it does not read."""
        await call(lambda: self._sync.write(content, timeout_ms))

    async def close_stdin(self) -> None:
        """Closes its standard input."""
        await call(lambda: self._sync.close_stdin())

    async def resize(self, rows: int, cols: int) -> None:
        """Sets the size of its terminal."""
        await call(lambda: self._sync.resize(rows, cols))


class AsyncWatch(WatchBase):
    """Watch, with coroutines for methods."""

    async def next(self, timeout_ms: int | None = None) -> Event:
        """The next event; TimedOut if there is none."""
        return await call_cancellable(lambda cancel: self._sync.next(timeout_ms, cancel=cancel))


class AsyncSandbox(SandboxBase):
    """Sandbox, with coroutines for methods."""

    async def exec(self, argv: Iterable[Path], *, cwd: Path | None = None, env: Mapping[str,
                   str] | None = None, timeout_ms: int | None = None,
                   output_max: int | None = None, stdin: Data | None = None,
                   stdin_fd: int | None = None, merge: bool = False, keep: Keep | None = None,
                   sudo: bool = False, pty: bool = False, rows: int = 0, cols: int = 0,
                   allowed_domains: Iterable[str] | None = None,
                   package_managers: Iterable[str] | None = None,
                   on_output: OnOutput | None = None,
                   on_denial: OnDenial | None = None) -> ExecResult:
        """Runs argv unchanged, without a shell. A non-zero exit status is a result, not an
        error. cwd, env, timeout_ms, output_max and stdin are for this command only. keep says
        which part of output over output_max is kept. merge gives both streams one pipe, so that
        the order of `output` is exact. on_output gets all output as it arrives; on_denial each
        host that is refused to the command. allowed_domains and package_managers restrict its
        network."""
        on_output = on_loop(on_output)
        on_denial = on_loop(on_denial)
        return await call_cancellable(lambda cancel: self._sync.exec(argv, cwd=cwd, env=env,
                                                     timeout_ms=timeout_ms,
                                                     output_max=output_max, stdin=stdin,
                                                     stdin_fd=stdin_fd, merge=merge, keep=keep,
                                                     sudo=sudo, pty=pty, rows=rows, cols=cols,
                                                     allowed_domains=allowed_domains,
                                                     package_managers=package_managers,
                                                     on_output=on_output, on_denial=on_denial,
                                                     cancel=cancel))

    async def sh(self, command: Path, *, cwd: Path | None = None, env: Mapping[str,
                 str] | None = None, timeout_ms: int | None = None,
                 output_max: int | None = None, stdin: Data | None = None,
                 stdin_fd: int | None = None, session: str | None = None, restart: bool = False,
                 merge: bool = False, keep: Keep | None = None, sudo: bool = False,
                 pty: bool = False, rows: int = 0, cols: int = 0,
                 allowed_domains: Iterable[str] | None = None,
                 package_managers: Iterable[str] | None = None,
                 on_output: OnOutput | None = None,
                 on_denial: OnDenial | None = None) -> ExecResult:
        """Runs `bash -c command`, or `sh -c command` if the sandbox has no bash. With `session`
        it runs in a persistent shell of that name; `restart` starts that shell anew. The other
        options are those of exec."""
        on_output = on_loop(on_output)
        on_denial = on_loop(on_denial)
        return await call_cancellable(lambda cancel: self._sync.sh(command, cwd=cwd, env=env,
                                                     timeout_ms=timeout_ms,
                                                     output_max=output_max, stdin=stdin,
                                                     stdin_fd=stdin_fd, session=session,
                                                     restart=restart, merge=merge, keep=keep,
                                                     sudo=sudo, pty=pty, rows=rows, cols=cols,
                                                     allowed_domains=allowed_domains,
                                                     package_managers=package_managers,
                                                     on_output=on_output, on_denial=on_denial,
                                                     cancel=cancel))

    async def start(self, argv: Iterable[Path], *, cwd: Path | None = None, env: Mapping[str,
                    str] | None = None, timeout_ms: int | None = None,
                    output_max: int | None = None, stdin: Data | bool | None = None,
                    stdin_fd: int | None = None, merge: bool = False, sudo: bool = False,
                    pty: bool = False, rows: int = 0, cols: int = 0,
                    tied: bool = False) -> AsyncProcess:
        """Starts a background process and returns at once. stdin=True opens a pipe for
        Process.write. With `tied` the process ends with its handle or with this program."""
        return AsyncProcess._of(await call(lambda: self._sync.start(argv, cwd=cwd, env=env,
                                                   timeout_ms=timeout_ms, output_max=output_max,
                                                   stdin=stdin, stdin_fd=stdin_fd, merge=merge,
                                                   sudo=sudo, pty=pty, rows=rows, cols=cols,
                                                   tied=tied), close_later))

    async def start_sh(self, command: Path, *, cwd: Path | None = None, env: Mapping[str,
                       str] | None = None, timeout_ms: int | None = None,
                       output_max: int | None = None, stdin: Data | bool | None = None,
                       stdin_fd: int | None = None, merge: bool = False, sudo: bool = False,
                       pty: bool = False, rows: int = 0, cols: int = 0,
                       tied: bool = False) -> AsyncProcess:
        """As start, for a shell string."""
        return AsyncProcess._of(await call(lambda: self._sync.start_sh(command, cwd=cwd,
                                                   env=env, timeout_ms=timeout_ms,
                                                   output_max=output_max, stdin=stdin,
                                                   stdin_fd=stdin_fd, merge=merge, sudo=sudo,
                                                   pty=pty, rows=rows, cols=cols, tied=tied),
                                                   close_later))

    async def process(self, pid: int) -> AsyncProcess:
        """A handle of an existing background process."""
        return AsyncProcess._of(await call(lambda: self._sync.process(pid), close_later))

    async def processes(self) -> List[ProcessInfo]:
        """All background processes, running and ended."""
        return await call(lambda: self._sync.processes())

    async def wait_port(self, port: int, timeout_ms: int | None = None) -> None:
        """Waits until a process listens on this port of the sandbox's loopback; TimedOut."""
        await call_cancellable(lambda cancel: self._sync.wait_port(port, timeout_ms,
                                              cancel=cancel))

    async def wait_log(self, text: Path, timeout_ms: int | None = None) -> None:
        """Waits until the log of a background process contains `text`; TimedOut."""
        await call_cancellable(lambda cancel: self._sync.wait_log(text, timeout_ms,
                                              cancel=cancel))

    async def read(self, path: Path, *, offset: int = 0, limit: int | None = None,
                   byte_max: int = 0, numbers: bool = False, text: bool = False,
                   hash: bool = False, nofollow: bool = False) -> ReadResult:
        """Reads lines `offset` (0-based) and following, at most `limit` (default 2000; 0 asks
        only for the counts) and byte_max bytes (default 256 KiB). An image is returned whole in
        content_bytes, with its mime_type, unless `text`. numbers puts the number before each
        line; hash fills in the SHA-256 of the file."""
        return await call_cancellable(lambda cancel: self._sync.read(path, offset=offset,
                                                     limit=limit, byte_max=byte_max,
                                                     numbers=numbers, text=text, hash=hash,
                                                     nofollow=nofollow, cancel=cancel))

    async def read_bytes(self, path: Path, *, offset: int = 0, limit: int = 0,
                         nofollow: bool = False) -> bytes:
        """The bytes of a file from byte `offset`, at most `limit` (0: to the end)."""
        return await call_cancellable(lambda cancel: self._sync.read_bytes(path, offset=offset,
                                                     limit=limit, nofollow=nofollow,
                                                     cancel=cancel))

    async def read_into(self, path: Path, sink: Sink, *, offset: int = 0, limit: int = 0,
                        nofollow: bool = False) -> None:
        """As read_bytes; the bytes go to a binary file or a function, piece by piece."""
        await call_cancellable(lambda cancel: self._sync.read_into(path, sink, offset=offset,
                                              limit=limit, nofollow=nofollow, cancel=cancel))

    async def write(self, path: Path, content: Data, *, create: bool = False,
                    append: bool = False, sync: bool = False, no_parents: bool = False,
                    nofollow: bool = False, if_hash: str | None = None,
                    mode: int = 0) -> WriteResult:
        """Writes a whole file atomically; missing directories are created unless no_parents.
        create: Exists if the file exists. if_hash: `conflict` if the file has another SHA-256.
        mode is that of a new file."""
        return await call(lambda: self._sync.write(path, content, create=create, append=append,
                                  sync=sync, no_parents=no_parents, nofollow=nofollow,
                                  if_hash=if_hash, mode=mode))

    async def write_from(self, path: Path, source: Source, *, create: bool = False,
                         append: bool = False, sync: bool = False, no_parents: bool = False,
                         nofollow: bool = False, if_hash: str | None = None,
                         mode: int = 0) -> WriteResult:
        """As write; the content comes from a binary file or an iterable of bytes."""
        return await call(lambda: self._sync.write_from(path, source, create=create,
                                  append=append, sync=sync, no_parents=no_parents,
                                  nofollow=nofollow, if_hash=if_hash, mode=mode))

    async def write_many(self, files: FilesToWrite, *, create: bool = False, sync: bool = False,
                         no_parents: bool = False, nofollow: bool = False) -> None:
        """Writes all files or none. The keys are paths; a value is the content, or a
        FileContent with a mode or if_hash."""
        await call(lambda: self._sync.write_many(files, create=create, sync=sync,
                           no_parents=no_parents, nofollow=nofollow))

    async def write_tar(self, source: Source, path: Path | None = None, *, create: bool = False,
                        sync: bool = False, no_parents: bool = False,
                        nofollow: bool = False) -> None:
        """Writes the files of a tar stream below a directory, all or none."""
        await call(lambda: self._sync.write_tar(source, path, create=create, sync=sync,
                           no_parents=no_parents, nofollow=nofollow))

    async def edit(self, path: Path, edits: Sequence[Edit], *,
                   nofollow: bool = False) -> EditResult:
        """Applies the edits in order, all or none: [{"old_string": ..., "new_string": ...,
        "replace_all": False}]. `no_match` or `ambiguous` if a string does not occur once."""
        return await call(lambda: self._sync.edit(path, edits, nofollow=nofollow))

    async def delete(self, path: Path, *, recursive: bool = False,
                     nofollow: bool = False) -> None:
        """Deletes a file, or with recursive a directory and all that is below it."""
        await call(lambda: self._sync.delete(path, recursive=recursive, nofollow=nofollow))

    async def mkdir(self, path: Path, *, no_parents: bool = False,
                    nofollow: bool = False) -> None:
        """Makes a directory, and the missing ones above it unless no_parents."""
        await call(lambda: self._sync.mkdir(path, no_parents=no_parents, nofollow=nofollow))

    async def rename(self, from_: Path, to: Path, *, nofollow: bool = False) -> None:
        """Renames a file or directory."""
        await call(lambda: self._sync.rename(from_, to, nofollow=nofollow))

    async def stat(self, path: Path, *, nofollow: bool = False) -> FileInfo:
        """What a path is. Follows symlinks unless nofollow."""
        return await call(lambda: self._sync.stat(path, nofollow=nofollow))

    async def list(self, path: Path = '.', *, nofollow: bool = False) -> FileList:
        """The entries of a directory, sorted by name."""
        return await call(lambda: self._sync.list(path, nofollow=nofollow))

    async def glob(self, pattern: Path, path: Path | None = None, *, nofollow: bool = False,
                   gitignore: bool = False) -> FileList:
        """The files below a directory whose path matches: ** * ? [..] {a,b}, also dotfiles.
        Paths are sorted and relative to the directory. gitignore leaves out what .gitignore
        files name."""
        return await call(lambda: self._sync.glob(pattern, path, nofollow=nofollow,
                                  gitignore=gitignore))

    async def grep(self, pattern: Path, path: Path | None = None, *, glob: Path | None = None,
                   regex: bool = False, ignore_case: bool = False, gitignore: bool = False,
                   context: int = 0, max: int = 0) -> GrepResult:
        """The lines that contain the pattern, which is literal unless regex; sorted by path and
        line. Binary files are skipped. gitignore leaves out what .gitignore files name."""
        return await call_cancellable(lambda cancel: self._sync.grep(pattern, path, glob=glob,
                                                     regex=regex, ignore_case=ignore_case,
                                                     gitignore=gitignore, context=context,
                                                     max=max, cancel=cancel))

    async def watch(self, path: Path = '.', *, recursive: bool = False) -> AsyncWatch:
        """Watches a directory; with recursive all below it, too."""
        return AsyncWatch._of(await call(lambda: self._sync.watch(path, recursive=recursive),
                                                 close_later))

    async def export(self, path: Path, host_dir: Path, *, protected: bool = False,
                     max_bytes: int = 0, max_entries: int = 0,
                     on_progress: OnProgress | None = None,
                     on_protected: OnProtected | None = None) -> None:
        """Copies a directory of the sandbox to a directory of the host, which is created if
        missing. Files that programs of the host would run, such as git hooks, are left out
        unless `protected`; on_protected(path, rule) is called for each."""
        on_progress = on_loop(on_progress)
        on_protected = on_loop(on_protected)
        await call_cancellable(lambda cancel: self._sync.export(path, host_dir,
                                              protected=protected, max_bytes=max_bytes,
                                              max_entries=max_entries, on_progress=on_progress,
                                              on_protected=on_protected, cancel=cancel))

    async def import_(self, host_dir: Path, path: Path = '.', *, max_bytes: int = 0,
                      max_entries: int = 0, on_progress: OnProgress | None = None) -> None:
        """Copies a directory of the host into the sandbox."""
        on_progress = on_loop(on_progress)
        await call_cancellable(lambda cancel: self._sync.import_(host_dir, path,
                                              max_bytes=max_bytes, max_entries=max_entries,
                                              on_progress=on_progress, cancel=cancel))

    async def export_tar(self, path: Path, sink: Sink, *, max_bytes: int = 0,
                         max_entries: int = 0, on_progress: OnProgress | None = None,
                         on_protected: OnProtected | None = None) -> None:
        """Writes a directory as a tar stream to a binary file or a function. It contains files
        that programs of the host would run; on_protected(path, rule) is called for each."""
        on_progress = on_loop(on_progress)
        on_protected = on_loop(on_protected)
        await call_cancellable(lambda cancel: self._sync.export_tar(path, sink,
                                              max_bytes=max_bytes, max_entries=max_entries,
                                              on_progress=on_progress,
                                              on_protected=on_protected, cancel=cancel))

    async def import_tar(self, path: Path, source: Source, *, max_bytes: int = 0,
                         max_entries: int = 0, on_progress: OnProgress | None = None) -> None:
        """Unpacks a tar stream, from a binary file or an iterable of bytes, into a
        directory."""
        on_progress = on_loop(on_progress)
        await call_cancellable(lambda cancel: self._sync.import_tar(path, source,
                                              max_bytes=max_bytes, max_entries=max_entries,
                                              on_progress=on_progress, cancel=cancel))

    async def info(self) -> Info:
        """What the sandbox is, where its directories are, and what it enforces."""
        return await call(lambda: self._sync.info())

    async def fork(self, name: str | None = None) -> AsyncSandbox:
        """Another sandbox with the same files and configuration."""
        return type(self)._of(await call(lambda: self._sync.fork(name), close_later))

    async def set_workdir(self, path: Path) -> None:
        """Changes the directory that commands and relative paths start from."""
        await call(lambda: self._sync.set_workdir(path))

    async def cleanup(self, *, force: bool = False) -> None:
        """Removes everything in the workspace. A directory that existed before the sandbox
        needs force; else Denied."""
        await call(lambda: self._sync.cleanup(force=force))

    async def extend(self, ms: int) -> None:
        """Sets the end of the sandbox to so many milliseconds from now."""
        await call(lambda: self._sync.extend(ms))

    async def pause(self) -> None:
        """Suspends all processes and the lifetime until resume or connect."""
        await call(lambda: self._sync.pause())

    async def resume(self) -> None:
        """Ends a pause."""
        await call(lambda: self._sync.resume())

    async def network(self, since: int = 0) -> NetResult:
        """The network rules, and the network events from number `since` on."""
        return await call(lambda: self._sync.network(since))

    async def network_set(self, network: Literal['none', 'all'] | None = None, *,
                          net_allow: Iterable[str] | None = None,
                          net_deny: Iterable[str] | None = None,
                          packages: Iterable[str] | None = None) -> None:
        """Replaces all network rules. Connections that the new ones do not allow are cut."""
        await call(lambda: self._sync.network_set(network, net_allow=net_allow,
                           net_deny=net_deny, packages=packages))

    async def would_allow(self, op: Op, target: Path) -> Verdict:
        """Checks an operation on a path, command or host against the policy, without doing
        it."""
        return await call(lambda: self._sync.would_allow(op, target))

    async def destroy(self) -> None:
        """Ends every process and removes the sandbox. Later calls are `gone`. Harmless when
        repeated."""
        await call(lambda: self._sync.destroy())

    async def reset(self) -> None:
        """As destroy, but the next call opens a new sandbox with the same id. Only for backends
        with the capability lazy."""
        await call(lambda: self._sync.reset())

    async def snapshot(self) -> SnapshotResult:
        """Saves the present files."""
        return await call(lambda: self._sync.snapshot())

    async def snapshot_as(self, name: str | None = None) -> SnapshotResult:
        """Saves the present files under a name (None: one is made up); Exists if it is
        taken."""
        return await call(lambda: self._sync.snapshot_as(name))

    async def snapshots(self) -> List[SnapshotEntry]:
        """The snapshots, the oldest first."""
        return await call(lambda: self._sync.snapshots())

    async def rollback(self, snapshot: str | None = None) -> None:
        """Replaces the files with those of a snapshot (None: the newest, or the host's files if
        there is none). `conflict` while a command or background process runs."""
        await call(lambda: self._sync.rollback(snapshot))

    async def undo(self) -> None:
        """Goes back to the snapshot before the last command (option `undo`), and removes it."""
        await call(lambda: self._sync.undo())

    async def discard(self) -> None:
        """Throws all changes and snapshots away: the workspace is the host's directory
        again."""
        await call(lambda: self._sync.discard())

    async def diff(self, paths: Iterable[Path] | None = None, *, patch: bool = False,
                   counts: bool = False, hashes: bool = False) -> DiffResult:
        """Compares the workspace with the host's directory. patch: also a patch that `git
        apply` takes; counts: added and removed lines; hashes: SHA-256 before and after."""
        return await call(lambda: self._sync.diff(paths, patch=patch, counts=counts,
                                  hashes=hashes))

    async def commit(self, paths: Iterable[Path] | None = None, *, dry_run: bool = False,
                     protected: bool = False, mine: bool = False, theirs: bool = False,
                     resolved: Mapping[str, Data] | None = None) -> CommitResult:
        """Writes changes to the host's directory, all or, if there are conflicts, none: check
        `written`. A conflict is decided by mine (keep the host's file), theirs (take the
        sandbox's) or the content in `resolved`. protected: also files that programs of the host
        would run."""
        return await call(lambda: self._sync.commit(paths, dry_run=dry_run, protected=protected,
                                  mine=mine, theirs=theirs, resolved=resolved))


async def sandboxes() -> List[SandboxEntry]:
    """The detached sandboxes of this user, oldest first."""
    return await call(lambda: _functions.sandboxes())


async def destroy_id(id: str, *, on_denial: Callable[[Denial], object] | None = None) -> None:
    """Destroys a sandbox by id or name. NotFound for an unknown name; one that has ended is no
    error."""
    on_denial = on_loop(on_denial)
    await call(lambda: _functions.destroy_id(id, on_denial=on_denial))


async def doctor(workspace: Path | None = None) -> DoctorResult:
    """Checks which parts of the backend `jail` work on this host."""
    return await call(lambda: _functions.doctor(workspace))


async def audit_read(id: str, on_line: Callable[[str], object] | None = None) -> List[str]:
    """The lines (JSON) of a sandbox's audit log, by id or name, also after it has ended. With
    on_line each line goes to that function instead."""
    on_line = on_loop(on_line)
    return await call(lambda: _functions.audit_read(id, on_line))


async def audit_read_file(path: Path, on_line: Callable[[str],
                          object] | None = None) -> List[str]:
    """As audit_read, for the log at a path."""
    on_line = on_loop(on_line)
    return await call(lambda: _functions.audit_read_file(path, on_line))


async def audit_verify(id: str) -> AuditReport:
    """Recomputes the hash chain of a sandbox's audit log."""
    return await call(lambda: _functions.audit_verify(id))


async def audit_verify_file(path: Path) -> AuditReport:
    """As audit_verify, for the log at a path."""
    return await call(lambda: _functions.audit_verify_file(path))


async def audit_logs() -> List[AuditLog]:
    """The audit logs of this user at the default place, the last written one last."""
    return await call(lambda: _functions.audit_logs())


async def audit_remove(id: str) -> None:
    """Removes the log of a sandbox that has ended; `conflict` if it has not."""
    await call(lambda: _functions.audit_remove(id))


async def forget(id: str) -> None:
    """Removes the record of a sandbox in the state "unknown", and nothing else."""
    await call(lambda: _functions.forget(id))


async def aside_list() -> List[AsideEntry]:
    """The protected files that were moved out of workspaces of this user."""
    return await call(lambda: _functions.aside_list())


async def aside_restore(id: str, *, replace: bool = False) -> None:
    """Moves one back to where it was. Programs of the host may run it from then on."""
    await call(lambda: _functions.aside_restore(id, replace=replace))


async def aside_remove(id: str) -> None:
    """Deletes one."""
    await call(lambda: _functions.aside_remove(id))
