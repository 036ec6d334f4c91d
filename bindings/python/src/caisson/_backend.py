"""_backend.py: backends written in Python. Only `exec` is needed: the library derives every file
call from it, with the tools of a POSIX shell."""
from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ._callbacks import StreamName
from ._constants import EXEC_MERGE, EXEC_PTY, EXEC_RESTART, EXEC_SUDO, STATUSES, STDERR, STDOUT
from ._encode import fsname
from ._errors import Error, take
from ._library import ffi, lib
from ._results import strings, text

Ended = Literal["exited", "timeout", "cancel", "spawn", "memory", "pids", "cpu", "disk", "policy",
                "lost"]
_ENDS = {word: number for number, word in enumerate(Ended.__args__)}  # type: ignore[attr-defined]
_STREAMS = {"stdout": STDOUT, "stderr": STDERR}
_STOP = 2
_PIECE = 1 << 16


@dataclass(slots=True)
class BackendResult:
    """How a command of a backend ended. `spawn`: it was not started, for the reason in message;
    `lost`: the connection broke."""

    exit_code: int | None = 0
    signal: int = 0
    ended: Ended = "exited"
    message: str = ""


class BackendRequest:
    """A command that a backend is to run; valid until its `exec` returns."""

    def __init__(self, req: Any, sink: Any) -> None:
        self._req, self._sink = req, sink
        #: The words of the command. Never join them.
        self.argv: list[str] = strings(req.argv)
        #: Variables that are added to the backend's own.
        self.env: dict[str, str] = dict(_pair(one) for one in strings(req.env))
        self.cwd: str | None = text(req.cwd)
        self.session: str | None = text(req.session)
        #: The shell string when argv runs a shell.
        self.command: str | None = text(req.command)
        self.merge = bool(req.flags & EXEC_MERGE)
        self.pty = bool(req.flags & EXEC_PTY)
        self.sudo = bool(req.flags & EXEC_SUDO)
        self.restart = bool(req.flags & EXEC_RESTART)
        #: Descriptors that become readable when the command must be stopped.
        self.cancel_fds = [fd for fd in req.cancel_fds if fd >= 0]

    def remaining(self) -> float | None:
        """Seconds until the deadline; None: there is none. The whole process tree must end
        then."""
        deadline: int = self._req.deadline_ns
        return max(0.0, (deadline - time.monotonic_ns()) / 1e9) if deadline else None

    def cancelled(self) -> bool:
        """The command must be stopped."""
        return bool(select.select(self.cancel_fds, [], [], 0)[0])

    def stdin(self) -> bytes:
        """All of the command's input."""
        if self._req.input_fd >= 0:
            with open(os.dup(self._req.input_fd), "rb") as file:
                return file.read()
        pieces, source = [], self._req.input
        buffer = ffi.new("char[]", _PIECE)
        while source and (size := source.read(source.ctx, buffer, _PIECE)) > 0:
            pieces.append(bytes(ffi.buffer(buffer, size)))
        return b"".join(pieces)

    def write(self, data: bytes, stream: StreamName = "stdout") -> bool:
        """Passes on output. False: no more is wanted, the command may be ended."""
        got: int = self._sink.write(self._sink.ctx, _STREAMS[stream], ffi.from_buffer(data),
                                    len(data))
        return got != _STOP

    def run(self, argv: list[str], **options: Any) -> BackendResult:
        """Runs a program of this machine to its end, for example a client that has the command
        executed elsewhere: with the input, output, deadline and cancellation of the request.
        Options are those of subprocess.Popen."""
        with open(os.memfd_create("stdin"), "w+b") as file:
            file.write(self.stdin())
            file.seek(0)
            try:
                child = subprocess.Popen(
                    argv, stdin=file, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT if self.merge else subprocess.PIPE,
                    start_new_session=True, **options)
            except OSError as error:
                return BackendResult(127 if isinstance(error, FileNotFoundError) else 126,
                                     ended="spawn", message=str(error))
        with child:
            ended = self._pump(child)
            if ended != "exited":
                os.killpg(child.pid, signal.SIGKILL)
            code = child.wait()
        return BackendResult(code if code >= 0 else None, max(0, -code), ended)

    def _pump(self, child: subprocess.Popen[bytes]) -> Ended:
        """Passes on all output; tells why the child must be ended, if so."""
        names: dict[int, StreamName] = {}
        if child.stdout is not None:
            names[child.stdout.fileno()] = "stdout"
        if child.stderr is not None:
            names[child.stderr.fileno()] = "stderr"
        while names:
            ready = select.select([*names, *self.cancel_fds], [], [], self.remaining())[0]
            if not ready:
                return "timeout"
            if any(fd in self.cancel_fds for fd in ready):
                return "cancel"
            for fd in ready:
                data = os.read(fd, _PIECE)
                if not data:
                    del names[fd]
                elif not self.write(data, names[fd]):
                    return "cancel"
        return "exited"


class Backend(Protocol):
    """What register_backend takes."""

    def exec(self, request: BackendRequest) -> BackendResult | int:
        """Runs one command to its end; an int is its exit code. Called from several threads at
        the same time. An exception means that the backend itself failed."""


def _pair(variable: str) -> tuple[str, str]:
    name, _, value = variable.partition("=")
    return name, value


def _fail(err: Any, code: int, message: str) -> int:
    return int(lib.csn_error_set(err, code, b"%s", ffi.new("char[]", fsname(message))))


def _exec(state: Any, req: Any, sink: Any, ret: Any, err: Any) -> int:
    backend: Backend = ffi.from_handle(state)
    try:
        result = backend.exec(BackendRequest(req, sink))
    except Error as error:
        return _fail(err, STATUSES[error.code], error.message)
    except BaseException as error:
        return _fail(err, STATUSES["internal"], f"{type(error).__name__}: {error}")
    if isinstance(result, int):
        result = BackendResult(result)
    ret.how = _ENDS[result.ended]
    ret.exit_code = -1 if result.exit_code is None else result.exit_code
    ret.signal = result.signal
    ret.message = result.message.encode()[:255]
    return 0


_registered: list[Any] = []  # the library has pointers to these for good


def register_backend(name: str, backend: Backend, *, isolation: str = "custom") -> None:
    """Makes a backend available to Sandbox(backend=name) in this process; Exists if the name is
    taken."""
    ops, err = ffi.new("csn_backend_ops *"), ffi.new("csn_error **")
    words = [ffi.new("char[]", fsname(word)) for word in (name, isolation)]
    state = ffi.new_handle(backend)
    function = ffi.callback("csn_status(void *, const csn_exec_req *, const csn_sink *, "
                            "csn_exec_end *, csn_error **)", _exec, error=STATUSES["internal"])
    ops.size = ffi.sizeof("csn_backend_ops")
    ops.name, ops.isolation = words
    ops.exec = function
    status = lib.csn_register_backend(ops, state, err)
    if status < 0:
        raise take(status, err)
    _registered.append((words, state, function, backend))
