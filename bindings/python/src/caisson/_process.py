"""_process.py: a background process, and a stream of file events."""
from __future__ import annotations

import signal as signals
import threading
from typing import Any, Literal, Protocol

from ._constants import STDERR, STDOUT
from ._encode import Data, data, nbytes
from ._errors import Error, TimedOut
from ._handle import Cancel, Handle, wait_in_slices
from ._library import ffi, lib
from ._results import (Event, LogChunk, ProcessInfo, denials, event, log_chunk, process_info)

_LIST, _CHUNK = ffi.typeof("csn_process_list **"), ffi.typeof("csn_log_chunk **")
_STREAMS = {"stdout": STDOUT, "stderr": STDERR}


class HasHandle(Protocol):
    """A sandbox."""

    _handle: Handle


class Process:
    """A background process of a sandbox. Closing the handle leaves the process running, unless it
    was started with `tied`."""

    def __init__(self, pointer: Any, sandbox: HasHandle) -> None:
        self._sandbox = sandbox  # which is not closed as garbage before this
        self._handle = Handle(pointer, lib.csn_process_free, sandbox._handle)
        self._pid: int = lib.csn_process_pid(pointer)

    @property
    def pid(self) -> int:
        """Its number in the sandbox."""
        return self._pid

    def logs(self, stream: Literal["stdout", "stderr"] = "stdout", offset: int = 0,
             wait_ms: int = 0, *, cancel: Cancel | None = None) -> LogChunk:
        """Output from byte `offset` on. If there is none, waits up to wait_ms for it. A terminal
        has only stdout."""
        if stream not in _STREAMS:
            raise ValueError(f"stream: {stream!r} is not stdout or stderr")

        def attempt(ms: int) -> LogChunk:
            found = self._handle.ask(_CHUNK, lib.csn_process_logs, _STREAMS[stream], offset, ms)
            try:
                chunk = log_chunk(found)
            finally:
                lib.csn_log_chunk_free(found)
            if not chunk.data and not chunk.end and ms > 0:
                empty.append(chunk)
                raise TimedOut("timeout", "no output")
            return chunk

        empty: list[LogChunk] = []
        try:
            return wait_in_slices(self._handle, wait_ms, cancel, attempt)
        except TimedOut:
            if not empty:
                raise
            return empty[-1]

    def wait(self, timeout_ms: int | None = None, *, cancel: Cancel | None = None) -> ProcessInfo:
        """Waits for its end; TimedOut if it still runs then. `denials` of the result names the
        protected files that were moved to the quarantine."""
        def attempt(ms: int) -> ProcessInfo:
            found = self._handle.ask(_LIST, lib.csn_process_wait, ms)
            try:
                info = process_info(found.items[0])
                info.denials = denials(found.denials, found.denial_count)
                return info
            finally:
                lib.csn_process_list_free(found)

        return wait_in_slices(self._handle, timeout_ms, cancel, attempt)

    def signal(self, signo: int = signals.SIGTERM) -> None:
        """Signals the process group; SIGKILL and SIGTERM go to the whole process tree."""
        self._handle.call(lib.csn_process_signal, int(signo))

    def write(self, content: Data, timeout_ms: int = 30_000) -> None:
        """Writes to its standard input or terminal; TimedOut if it does not read."""
        encoded = data(content)
        self._handle.call(lib.csn_process_write, ffi.from_buffer(encoded), nbytes(encoded),
                          timeout_ms)

    def close_stdin(self) -> None:
        """Closes its standard input."""
        self._handle.call(lib.csn_process_close_stdin)

    def resize(self, rows: int, cols: int) -> None:
        """Sets the size of its terminal."""
        self._handle.call(lib.csn_process_resize, rows, cols)

    def close(self) -> None:
        """Frees the handle."""
        self._handle.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._handle.close()

    def __repr__(self) -> str:
        return f"<caisson.Process {self._pid}>"


class Watch:
    """Events of a watched directory. Iterating waits for them, and ends when the directory or the
    sandbox has gone."""

    def __init__(self, pointer: Any, sandbox: HasHandle) -> None:
        self._sandbox = sandbox
        self._handle = Handle(pointer, lib.csn_watch_free, sandbox._handle)
        self._event: Any = ffi.new("csn_event *")
        self._one = threading.Lock()  # the library allows one thread at a time

    def next(self, timeout_ms: int | None = None, *, cancel: Cancel | None = None) -> Event:
        """The next event; TimedOut if there is none."""
        def attempt(ms: int) -> Event:
            with self._one:
                self._handle.call(lib.csn_watch_next, ms, self._event)
                return event(self._event)

        return wait_in_slices(self._handle, timeout_ms, cancel, attempt)

    def close(self) -> None:
        """Ends watching."""
        self._handle.close()

    def __iter__(self) -> Watch:
        return self

    def __next__(self) -> Event:
        try:
            return self.next()
        except Error as error:
            if error.code in ("gone", "not_found"):
                raise StopIteration from None
            raise

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._handle.close()
