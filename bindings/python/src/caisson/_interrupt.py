"""_interrupt.py: lets Ctrl-C end a command that the main thread waits for.

Python handles a signal when the call into the library has returned, which for a command may be
never. So while the main thread runs a command, the interpreter also writes the number of each
signal into a pipe (signal.set_wakeup_fd); a thread reads it and fires the command's cancel handle
at SIGINT. The command ends, and KeyboardInterrupt is raised as usual. A program with a handler of
its own for SIGINT, or with an event loop on the main thread, is left alone.
"""
from __future__ import annotations

import os
import signal
import threading

from ._handle import Cancel
from ._library import Process


class _Watcher:
    def __init__(self) -> None:
        self.reader, self.writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.writer, False)
        self.forks = Process.forks
        self.running: Cancel | None = None
        threading.Thread(target=self._watch, name="caisson-interrupt", daemon=True).start()

    def _watch(self) -> None:
        while True:
            numbers = os.read(self.reader, 64)
            running = self.running
            if signal.SIGINT in numbers and running is not None and \
                    signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                running.fire()


_watcher: _Watcher | None = None


def watch(cancel: Cancel) -> bool:
    """Fires `cancel` at Ctrl-C until release(); False: not here."""
    global _watcher
    if threading.get_ident() != Process.main_thread:
        return False
    if _watcher is None or _watcher.forks != Process.forks:
        _watcher = _Watcher()
    before = signal.set_wakeup_fd(_watcher.writer, warn_on_full_buffer=False)
    if before != -1:
        signal.set_wakeup_fd(before)
        return False
    _watcher.running = cancel
    return True


def release() -> None:
    signal.set_wakeup_fd(-1)
    if _watcher is not None:
        _watcher.running = None
