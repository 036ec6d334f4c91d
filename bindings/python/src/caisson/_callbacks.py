"""_callbacks.py: Python functions that the library calls.

There is one C function per type, made at its first use; its context is a handle of the object
that holds the Python function. An exception ends the call of the library, and is raised again
when that has returned.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Literal, Union

from ._encode import data as encoded
from ._library import ffi
from ._results import Denial, denial, text

StreamName = Literal["stdout", "stderr"]
#: Bytes to write: a file opened for reading, pieces of bytes, or bytes.
Source = Union[BinaryIO, Iterable[bytes], bytes, bytearray, memoryview]
#: Takes bytes: a file opened for writing, or a function.
Sink = Union[BinaryIO, Callable[[bytes], object]]

NAMES: dict[int, StreamName] = {1: "stdout", 2: "stderr"}


class Call:
    """Python functions of one call of the library."""

    __slots__ = ("function", "error", "context", "__weakref__")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.error: BaseException | None = None
        self.context: Any = ffi.new_handle(self)

    def run(self, *args: Any) -> Any:
        """The result of the function, or None when it failed now or before."""
        if self.error is not None:
            return None
        try:
            return self.function(*args)
        except BaseException as error:
            self.error = error
            return None

    def check(self) -> None:
        if self.error is not None:
            raise self.error


def output(function: Callable[[StreamName, bytes], object]) -> Call:
    return Call(lambda stream, p, size: function(NAMES[stream], bytes(ffi.buffer(p, size))))


def denials(function: Callable[[Denial], object]) -> Call:
    return Call(lambda p: function(denial(p)))


def lines(function: Callable[[str], object]) -> Call:
    return Call(lambda p, size: function(bytes(ffi.buffer(p, size)).decode("utf-8", "replace")))


def protected(function: Callable[[str, str], object]) -> Call:
    return Call(lambda path, rule: function(text(path) or "", text(rule) or ""))


def sink(target: Sink) -> Call:
    write: Callable[[bytes], object] = target if callable(target) else target.write
    return Call(lambda p, size: write(bytes(ffi.buffer(p, size))))


def _reader(source: Source) -> Callable[[int], Any]:
    read: Callable[[int], Any] | None = getattr(source, "read", None)
    if read is not None:
        return read
    whole = isinstance(source, (bytes, bytearray, memoryview))
    pieces: Iterator[Any] = iter([source] if whole else source)
    rest = memoryview(b"")

    def take(size: int) -> memoryview:
        nonlocal rest
        while not rest:
            piece = next(pieces, None)
            if piece is None:
                return rest
            rest = memoryview(encoded(piece)).cast("B")
        head, rest = rest[:size], rest[size:]
        return head

    return take


def source(given: Source) -> Call:
    read = _reader(given)

    def fill(buffer: Any, size: int) -> int:
        piece = read(size)
        if not isinstance(piece, (bytes, bytearray, memoryview)):
            raise TypeError("the source is not binary: it returned "
                            f"{type(piece).__name__}, not bytes")
        ffi.memmove(buffer, piece, len(piece))
        return len(piece)

    return Call(fill)


def _callback(kind: str, on_error: Any, body: Callable[..., Any]) -> Callable[[], Any]:
    @functools.cache
    def make() -> Any:
        return ffi.callback(kind, body, error=on_error)

    return make


def _stops(ctx: Any, *args: Any) -> int:
    """An output or line function: goes on, unless the Python function failed."""
    call: Call = ffi.from_handle(ctx)
    call.run(*args)
    return 0 if call.error is None else 1


def _tells(ctx: Any, *args: Any) -> None:
    call: Call = ffi.from_handle(ctx)
    call.run(*args)


def _fills(ctx: Any, buffer: Any, size: int) -> int:
    call: Call = ffi.from_handle(ctx)
    count = call.run(buffer, size)
    return -1 if count is None else int(count)


output_fn = _callback("csn_output_fn", 1, _stops)
write_fn = _callback("csn_write_fn", 1, _stops)
line_fn = _callback("csn_line_fn", 1, _stops)
read_fn = _callback("csn_read_fn", -1, _fills)
denial_fn = _callback("csn_denial_fn", None, _tells)
log_fn = _callback("csn_log_fn", None, _tells)
progress_fn = _callback("void(void *, uint64_t, uint64_t)", None, _tells)
protected_fn = _callback("void(void *, const char *, const char *)", None, _tells)
