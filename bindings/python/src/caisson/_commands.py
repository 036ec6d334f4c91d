"""_commands.py: commands and background processes."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from . import _callbacks as callbacks
from . import _interrupt as interrupt
from ._callbacks import StreamName
from ._constants import (EXEC_KEEP_BOTH, EXEC_KEEP_TAIL, EXEC_MERGE, EXEC_PTY, EXEC_RESTART,
                         EXEC_STDIN, EXEC_STDIN_FD, EXEC_SUDO, EXEC_TIED)
from ._encode import Data, Keeper, Path, data, fsname, nbytes
from ._errors import take
from ._handle import Cancel, Handle, borrow_cancel, return_cancel, wait_in_slices
from ._library import ffi, lib
from ._process import Process
from ._results import Denial, ExecResult, ProcessInfo, process_infos
from ._results import exec as to_exec
from ._stream import Stream

Keep = Literal["head", "tail", "both"]
OnOutput = Callable[[StreamName, bytes], object]
OnDenial = Callable[[Denial], object]

_OPTS, _RET, _ERR = (ffi.typeof(t) for t in ("csn_exec_opts *", "csn_exec_result **", "csn_error **"))
_PROCESS, _LIST = ffi.typeof("csn_process **"), ffi.typeof("csn_process_list **")
_OPTS_SIZE = ffi.sizeof("csn_exec_opts")
_KEEP = {"head": 0, "tail": EXEC_KEEP_TAIL, "both": EXEC_KEEP_BOTH}


class _Command:
    """The options of one command, and the functions that they name."""

    __slots__ = ("opts", "keeper", "calls")

    def __init__(self, flags: int) -> None:
        self.opts: Any = ffi.new(_OPTS)
        self.opts.size = _OPTS_SIZE
        self.opts.flags = flags
        self.keeper = Keeper()
        self.calls: list[callbacks.Call] = []

    def place(self, cwd: Path | None, env: Mapping[str, str] | None, timeout_ms: int | None,
              output_max: int | None) -> None:
        opts = self.opts
        if cwd is not None:
            opts.cwd = self.keeper.string(cwd)
        if env is not None:
            opts.env = self.keeper.variables(env)
        if timeout_ms is not None:
            opts.timeout_ms = timeout_ms
        if output_max is not None:
            opts.output_max = output_max

    def input(self, stdin: Data | bool | None, stdin_fd: int | None) -> None:
        opts = self.opts
        if stdin is True:
            opts.flags |= EXEC_STDIN
        elif stdin is not None and stdin is not False:
            content = data(stdin)
            # An empty input is not the absence of one.
            opts.stdin_data = self.keeper.content(content) if content else self.keeper.string("")
            opts.stdin_len = nbytes(content)
        if stdin_fd is not None:
            opts.flags |= EXEC_STDIN_FD
            opts.stdin_fd = stdin_fd

    def terminal(self, rows: int, cols: int) -> None:
        self.opts.rows = rows
        self.opts.cols = cols

    def hosts(self, domains: Iterable[str] | None, managers: Iterable[str] | None) -> None:
        if domains is not None:
            self.opts.allowed_domains = self.keeper.strings(domains)
        if managers is not None:
            self.opts.package_managers = self.keeper.strings(managers)

    def tell(self, on_output: OnOutput | None, on_denial: OnDenial | None) -> None:
        if on_output is not None:
            call = callbacks.output(on_output)
            self.opts.on_output, self.opts.on_output_ctx = callbacks.output_fn(), call.context
            self.calls.append(call)
        if on_denial is not None:
            call = callbacks.denials(on_denial)
            self.opts.on_denial, self.opts.on_denial_ctx = callbacks.denial_fn(), call.context
            self.calls.append(call)

    def run(self, handle: Handle, function: Any, what: Any, cancel: Cancel | None) -> ExecResult:
        """Runs the command to its end. It always has a cancel handle: for close and Ctrl-C."""
        own = borrow_cancel() if cancel is None else cancel
        self.opts.cancel = own._pointer
        ret, err = ffi.new(_RET), ffi.new(_ERR)
        pointer = handle.enter()
        handle.cancels.add(own)
        watched = interrupt.watch(own)
        try:
            status = function(pointer, what, self.opts, ret, err)
        finally:
            if watched:
                interrupt.release()
            handle.cancels.discard(own)
            handle.leave()
        result = ffi.gc(ret[0], lib.csn_exec_result_free) if status == 0 else None
        if cancel is None:
            return_cancel(own)
        error = take(status, err) if status < 0 else None
        for call in self.calls:
            call.check()
        if error is not None:
            raise error
        return to_exec(result)


def _flags(merge: bool, keep: Keep | None, restart: bool, sudo: bool, pty: bool) -> int:
    flags = 0
    if merge:
        flags |= EXEC_MERGE
    if keep is not None:
        if keep not in _KEEP:
            raise ValueError(f"keep: {keep!r} is not head, tail or both")
        flags |= _KEEP[keep]
    if restart:
        flags |= EXEC_RESTART
    if sudo:
        flags |= EXEC_SUDO
    return flags | EXEC_PTY if pty else flags


class Commands:
    """The part of Sandbox that runs commands."""

    _handle: Handle

    def exec(self, argv: Iterable[Path], *, cwd: Path | None = None,
             env: Mapping[str, str] | None = None, timeout_ms: int | None = None,
             output_max: int | None = None, stdin: Data | None = None,
             stdin_fd: int | None = None, merge: bool = False, keep: Keep | None = None,
             sudo: bool = False, pty: bool = False, rows: int = 0, cols: int = 0,
             allowed_domains: Iterable[str] | None = None,
             package_managers: Iterable[str] | None = None,
             on_output: OnOutput | None = None, on_denial: OnDenial | None = None,
             cancel: Cancel | None = None) -> ExecResult:
        """Runs argv unchanged, without a shell. A non-zero exit status is a result, not an error.

        cwd, env, timeout_ms, output_max and stdin are for this command only. keep says which part
        of output over output_max is kept. merge gives both streams one pipe, so that the order of
        `output` is exact. on_output gets all output as it arrives; on_denial each host that is
        refused to the command. allowed_domains and package_managers restrict its network."""
        command = _Command(_flags(merge, keep, False, sudo, pty))
        command.place(cwd, env, timeout_ms, output_max)
        if stdin is not None or stdin_fd is not None:
            command.input(stdin, stdin_fd)
        if allowed_domains is not None or package_managers is not None:
            command.hosts(allowed_domains, package_managers)
        if on_output is not None or on_denial is not None:
            command.tell(on_output, on_denial)
        if pty:
            command.terminal(rows, cols)
        return command.run(self._handle, lib.csn_exec, command.keeper.strings(argv), cancel)

    def sh(self, command: Path, *, cwd: Path | None = None, env: Mapping[str, str] | None = None,
           timeout_ms: int | None = None, output_max: int | None = None,
           stdin: Data | None = None, stdin_fd: int | None = None, session: str | None = None,
           restart: bool = False, merge: bool = False, keep: Keep | None = None,
           sudo: bool = False, pty: bool = False, rows: int = 0, cols: int = 0,
           allowed_domains: Iterable[str] | None = None,
           package_managers: Iterable[str] | None = None, on_output: OnOutput | None = None,
           on_denial: OnDenial | None = None, cancel: Cancel | None = None) -> ExecResult:
        """Runs `bash -c command`, or `sh -c command` if the sandbox has no bash. With `session`
        it runs in a persistent shell of that name; `restart` starts that shell anew. The other
        options are those of exec."""
        line = _Command(_flags(merge, keep, restart, sudo, pty))
        line.place(cwd, env, timeout_ms, output_max)
        if stdin is not None or stdin_fd is not None:
            line.input(stdin, stdin_fd)
        if allowed_domains is not None or package_managers is not None:
            line.hosts(allowed_domains, package_managers)
        if on_output is not None or on_denial is not None:
            line.tell(on_output, on_denial)
        if pty:
            line.terminal(rows, cols)
        if session is not None:
            line.opts.session = line.keeper.string(session)
        return line.run(self._handle, lib.csn_sh, fsname(command), cancel)

    def stream(self, argv: Iterable[Path], **options: Any) -> Stream:
        """As exec, with the output as an iterator of chunks; the command waits while the consumer
        does not take them. `result` of the stream is the ExecResult. Ending the iteration early
        (close, or the end of a `with` block) ends the command."""
        words = list(argv)
        return Stream(lambda put, cancel: self.exec(words, on_output=put, cancel=cancel,
                                                    **options))

    def stream_sh(self, command: Path, **options: Any) -> Stream:
        """As sh, with the output as an iterator: see stream."""
        return Stream(lambda put, cancel: self.sh(command, on_output=put, cancel=cancel,
                                                  **options))

    def _start(self, function: Any, what: Any, command: _Command) -> Process:
        return Process(self._handle.ask(_PROCESS, function, what, command.opts), self)

    def start(self, argv: Iterable[Path], *, cwd: Path | None = None,
              env: Mapping[str, str] | None = None, timeout_ms: int | None = None,
              output_max: int | None = None, stdin: Data | bool | None = None,
              stdin_fd: int | None = None, merge: bool = False, sudo: bool = False,
              pty: bool = False, rows: int = 0, cols: int = 0, tied: bool = False) -> Process:
        """Starts a background process and returns at once. stdin=True opens a pipe for
        Process.write. With `tied` the process ends with its handle or with this program."""
        command = _Command(_flags(merge, None, False, sudo, pty) | (EXEC_TIED if tied else 0))
        command.place(cwd, env, timeout_ms, output_max)
        command.input(stdin, stdin_fd)
        command.terminal(rows, cols)
        return self._start(lib.csn_start, command.keeper.strings(argv), command)

    def start_sh(self, command: Path, *, cwd: Path | None = None,
                 env: Mapping[str, str] | None = None, timeout_ms: int | None = None,
                 output_max: int | None = None, stdin: Data | bool | None = None,
                 stdin_fd: int | None = None, merge: bool = False, sudo: bool = False,
                 pty: bool = False, rows: int = 0, cols: int = 0, tied: bool = False) -> Process:
        """As start, for a shell string."""
        line = _Command(_flags(merge, None, False, sudo, pty) | (EXEC_TIED if tied else 0))
        line.place(cwd, env, timeout_ms, output_max)
        line.input(stdin, stdin_fd)
        line.terminal(rows, cols)
        return self._start(lib.csn_start_sh, fsname(command), line)

    def process(self, pid: int) -> Process:
        """A handle of an existing background process."""
        return Process(self._handle.ask(_PROCESS, lib.csn_process_open, pid), self)

    def processes(self) -> list[ProcessInfo]:
        """All background processes, running and ended."""
        found = self._handle.ask(_LIST, lib.csn_processes)
        try:
            return process_infos(found.items, found.count)
        finally:
            lib.csn_process_list_free(found)

    def wait_port(self, port: int, timeout_ms: int | None = None, *,
                  cancel: Cancel | None = None) -> None:
        """Waits until a process listens on this port of the sandbox's loopback; TimedOut."""
        wait_in_slices(self._handle, timeout_ms, cancel,
                       lambda ms: self._handle.call(lib.csn_wait_port, port, ms))

    def wait_log(self, text: Path, timeout_ms: int | None = None, *,
                 cancel: Cancel | None = None) -> None:
        """Waits until the log of a background process contains `text`; TimedOut."""
        wanted = fsname(text)
        wait_in_slices(self._handle, timeout_ms, cancel,
                       lambda ms: self._handle.call(lib.csn_wait_log, wanted, ms))
