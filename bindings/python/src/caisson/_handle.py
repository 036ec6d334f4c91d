"""_handle.py: pointers of the library that are shared by threads.

csn_close must not begin while another thread is about to start a call, so each call is counted
before it enters the library. close refuses new calls, ends the running ones (their cancel handle
fires; waits notice it between two slices) and frees the pointer when the last one has left.

After fork, the handles of the parent are refused in the child and never freed there: freeing one
would end the parent's sandbox.
"""
from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from ._constants import NO_LIMIT
from ._errors import Error, TimedOut, make, take
from ._library import Process, ffi, lib

T = TypeVar("T")
#: A wait without a cancel handle in C is done in pieces of so many milliseconds.
SLICE_MS = 250
_ERROR = ffi.typeof("csn_error **")
_SPARES_MAX = 64


def forked() -> Error:
    return make("invalid", "this handle was opened before fork()",
                hint="open a sandbox in this process, or connect to a detached one by its id")


class Cancel:
    """Stops calls from another thread. Any number of calls may be given the same one; firing it
    stops them all, and every later call that uses it."""

    __slots__ = ("_pointer", "_forks", "fired", "__weakref__")

    def __init__(self) -> None:
        self._pointer: Any = ffi.NULL
        ret, err = ffi.new("csn_cancel **"), ffi.new(_ERROR)
        status = lib.csn_cancel_new(ret, err)
        if status < 0:
            raise take(status, err)
        self._pointer = ret[0]
        self._forks = Process.forks
        self.fired = False

    def fire(self) -> None:
        """Stops the calls."""
        if self._forks != Process.forks:
            raise forked()
        self.fired = True
        lib.csn_cancel_fire(self._pointer)

    def __del__(self) -> None:
        if self._pointer and lib is not None:
            lib.csn_cancel_free(self._pointer)


_spares: list[Cancel] = []


def borrow_cancel() -> Cancel:
    """A cancel handle that has not fired: one that was used before, or a new one."""
    try:
        cancel = _spares.pop()
    except IndexError:
        return Cancel()
    return cancel if cancel._forks == Process.forks else Cancel()


def return_cancel(cancel: Cancel) -> None:
    if not cancel.fired and len(_spares) < _SPARES_MAX:
        _spares.append(cancel)


class Handle:
    """A pointer with the number of calls that use it."""

    __slots__ = ("_pointer", "_free", "_parent", "_users", "_lock", "_idle", "_forks", "closed", "children",
                 "cancels", "kept", "__weakref__")

    def __init__(self, pointer: Any, free: Callable[[Any], None],
                 parent: Handle | None = None) -> None:
        self._pointer = pointer
        self._free = free
        self._parent = parent
        self._users = 0
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._forks = Process.forks
        self.closed = False
        self.children: weakref.WeakSet[Handle] = weakref.WeakSet()
        self.cancels: set[Cancel] = set()  # of running commands
        self.kept: dict[str, Any] = {}  # what the library has pointers to
        if parent is not None:
            parent.children.add(self)

    def enter(self) -> Any:
        """The pointer, for one call; leave() must follow."""
        if self._forks != Process.forks:
            raise forked()
        if self._parent is not None:
            self._parent.enter()
        with self._lock:
            if not self.closed:
                self._users += 1
                return self._pointer
        if self._parent is not None:
            self._parent.leave()
        raise make("gone", "this handle is closed")

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self.closed and self._users == 0:
                self._idle.notify_all()
        if self._parent is not None:
            self._parent.leave()

    def call(self, function: Callable[..., int], *args: Any) -> None:
        """function(pointer, *args, err)."""
        err = ffi.new(_ERROR)
        pointer = self.enter()
        try:
            status = function(pointer, *args, err)
        finally:
            self.leave()
        if status < 0:
            raise take(status, err)

    def ask(self, kind: Any, function: Callable[..., int], *args: Any) -> Any:
        """function(pointer, *args, ret, err); the pointer that it returned in ret."""
        ret = ffi.new(kind)
        self.call(function, *args, ret)
        return ret[0]

    def is_own(self) -> bool:
        """Not a copy that fork made."""
        return self._forks == Process.forks

    def is_closing(self) -> bool:
        return self.closed or (self._parent is not None and self._parent.is_closing())

    def close(self) -> None:
        """Ends running calls, waits for them and frees the pointer. Harmless when repeated."""
        if self._forks != Process.forks:
            self.closed = True
            return
        with self._idle:
            first = not self.closed
            self.closed = True
        for cancel in list(self.cancels):
            cancel.fire()
        for child in list(self.children):
            child.close()
        with self._idle:
            while self._users > 0:
                self._idle.wait()
        if first:
            if self._parent is not None:
                self._parent.children.discard(self)
            self._free(self._pointer)
            self.kept.clear()


_open: weakref.WeakSet[Handle] = weakref.WeakSet()


def close_at_exit(handle: Handle) -> None:
    """The sandbox ends with this process in any case. Closing it also has its workspace searched
    for files that programs of the host would run."""
    _open.add(handle)


@atexit.register
def _close_all() -> None:
    for handle in list(_open):
        if handle._users == 0:
            handle.close()


def wait_in_slices(handle: Handle, timeout_ms: int | None, cancel: Cancel | None,
                   attempt: Callable[[int], T]) -> T:
    """attempt(milliseconds) until it does not time out. Between two attempts signals are handled
    and cancel and close are noticed."""
    end = None if timeout_ms is None or timeout_ms == NO_LIMIT \
        else time.monotonic() + timeout_ms / 1000
    while True:
        if cancel is not None and cancel.fired:
            raise make("cancelled", "cancelled by caller")
        left = None if end is None else max(0, round((end - time.monotonic()) * 1000))
        last = left is not None and left <= SLICE_MS
        try:
            return attempt(left if last and left is not None else SLICE_MS)
        except TimedOut:
            if last:
                raise
            if handle.is_closing():
                raise make("cancelled", "the sandbox is being closed") from None
