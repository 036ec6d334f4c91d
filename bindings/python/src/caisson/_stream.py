"""_stream.py: the output of a command as an iterator.

The command runs on a thread of the pool. Its output function hands over one chunk and blocks at
the next one until the consumer has taken it, so a slow consumer slows the command down.
"""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from . import _pool
from ._callbacks import StreamName
from ._handle import Cancel
from ._results import ExecResult


class Chunk(NamedTuple):
    """A piece of output."""

    stream: StreamName
    data: bytes

    @property
    def text(self) -> str:
        """The data as text. A character that is split between two chunks is replaced: decode
        with codecs.getincrementaldecoder if that matters."""
        return self.data.decode("utf-8", "replace")


Put = Callable[[StreamName, bytes], None]
Run = Callable[[Put, Cancel], ExecResult]


class Running:
    """A command and its next chunk. The thread of the command has this object and not the
    Stream, whose end therefore is noticed when its last reference goes."""

    def __init__(self, run: Run, on_change: Callable[[], None] | None = None) -> None:
        self._run: Run | None = run
        self._on_change = on_change
        self._chunk: Chunk | None = None
        self._closed = False
        self.changed = threading.Condition()
        self.cancel = Cancel()
        self.done = False
        self.value: ExecResult | None = None
        self.error: BaseException | None = None
        _pool.submit(self._work)

    def _work(self) -> None:
        run, self._run = self._run, None
        try:
            if run is not None:
                self.value = run(self._put, self.cancel)
        except BaseException as error:
            self.error = error
        del run
        with self.changed:
            self.done = True
            self._tell()

    def _tell(self) -> None:
        self.changed.notify_all()
        if self._on_change is not None:
            self._on_change()

    def _put(self, stream: StreamName, data: bytes) -> None:
        with self.changed:
            while self._chunk is not None and not self._closed:
                self.changed.wait()
            self._chunk = Chunk(stream, data)
            self._tell()

    def poll(self) -> Chunk | None:
        """Takes the chunk that is there. With the lock held."""
        chunk, self._chunk = self._chunk, None
        if chunk is not None:
            self.changed.notify_all()
        return None if self._closed else chunk

    def stop(self) -> None:
        """Ends the command; does not wait."""
        with self.changed:
            self._closed = True
            if not self.done:
                self.cancel.fire()
            self.changed.notify_all()

    def check(self) -> None:
        """At the end: raises what the command failed with."""
        if self.error is not None and not self._closed:
            raise self.error

    def result(self) -> ExecResult:
        if self.error is not None:
            raise self.error
        if self.value is None or self._closed and self.value.killed_by == "cancel":
            raise ValueError("the stream was closed before the command ended")
        return self.value


class Stream:
    """Iterator over the output of a running command."""

    def __init__(self, run: Run) -> None:
        self._running = Running(run)

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Chunk:
        running = self._running
        with running.changed:
            while (chunk := running.poll()) is None and not running.done:
                running.changed.wait()
        if chunk is not None:
            return chunk
        running.check()
        raise StopIteration

    @property
    def result(self) -> ExecResult:
        """The result; reads the rest of the output first if there is some."""
        for _ in self:
            pass
        return self._running.result()

    def close(self) -> None:
        """Ends the command if it still runs, and waits for its end."""
        self._running.stop()
        with self._running.changed:
            while not self._running.done:
                self._running.changed.wait()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_running"):
            self._running.stop()
