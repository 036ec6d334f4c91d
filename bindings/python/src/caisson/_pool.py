"""_pool.py: threads for calls that must not block their caller.

A command occupies its thread for as long as it runs, so the pool grows with the calls, unlike the
default executor of asyncio. Threads that have had nothing to do for a while end.
"""
from __future__ import annotations

import _thread
import queue
import threading
from collections.abc import Callable

from ._library import Process

THREADS_MAX = 1024
IDLE_SECONDS = 10.0


class Pool:
    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0  # threads that wait and have no job assigned
        self._unassigned = 0  # jobs that wait and have no thread assigned
        self._count = 0
        self.forks = Process.forks

    def submit(self, job: Callable[[], None]) -> None:
        """Runs the job, which must not raise, on a thread."""
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
            elif self._count < THREADS_MAX:
                self._count += 1
                # Thread.start would wait until the new thread runs, on the event loop.
                _thread.start_new_thread(self._work, (job,))
                return
            else:
                self._unassigned += 1
        self._jobs.put(job)

    def _work(self, job: Callable[[], None]) -> None:
        while True:
            job()
            del job  # it may own a sandbox
            with self._lock:
                if self._unassigned > 0:
                    self._unassigned -= 1
                else:
                    self._idle += 1
            found = self._next()
            if found is None:
                return
            job = found
            del found

    def _next(self) -> Callable[[], None] | None:
        while True:
            try:
                return self._jobs.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._idle > 0:
                        self._idle -= 1
                        self._count -= 1
                        return None
                # A job was assigned to this thread in the meantime.


_pool = Pool()


def submit(job: Callable[[], None]) -> None:
    global _pool
    if _pool.forks != Process.forks:  # the threads are the parent's
        _pool = Pool()
    _pool.submit(job)
