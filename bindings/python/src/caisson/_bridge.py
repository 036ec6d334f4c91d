"""_bridge.py: the library's calls as coroutines.

A call runs on a thread of the package's own pool. Cancelling its task fires the cancel handle of
the call, where it has one, and waits for the end of the call: nothing goes on in the background,
and a sandbox or process that was made meanwhile is closed.
"""
from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from . import _pool
from ._encode import Path
from ._errors import Error, make
from ._handle import Cancel, borrow_cancel, return_cancel
from ._process import Process, Watch
from ._results import Denial, Event, ExecResult
from ._sandbox import Sandbox
from ._stream import Chunk, Run, Running

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import SandboxOptions

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])
S = TypeVar("S", bound="SandboxBase")
P = TypeVar("P", bound="ProcessBase")
W = TypeVar("W", bound="WatchBase")


class _Job(Generic[T]):
    """One call: runs on a thread, its end is told to the event loop."""

    __slots__ = ("_work", "_loop", "future", "value", "error", "is_over")

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self._loop.create_future()
        self.value: T | None = None
        self.error: BaseException | None = None
        self.is_over = False

    def __call__(self) -> None:
        try:
            self.value = self._work()
        except BaseException as error:
            self.error = error
        del self._work
        try:
            self._loop.call_soon_threadsafe(self._end)
        except RuntimeError:
            pass  # the loop is closed: no task waits

    def _end(self) -> None:
        self.is_over = True
        if not self.future.done():
            self.future.set_result(None)

    async def last(self) -> None:
        """Waits for the end although the task is being cancelled."""
        while not self.is_over:
            self.future = self._loop.create_future()
            try:
                await self.future
            except asyncio.CancelledError:
                pass

    def result(self) -> T:
        if self.error is not None:
            raise self.error
        return cast(T, self.value)


async def call(work: Callable[[], T], dispose: Callable[[T], None] | None = None) -> T:
    """The result of work(), which a thread computes. dispose gets a result that no task takes."""
    job = _Job(work)
    _pool.submit(job)
    try:
        await job.future
    except asyncio.CancelledError:
        await job.last()
        if dispose is not None and job.error is None:
            dispose(cast(T, job.value))
        raise
    return job.result()


async def call_cancellable(work: Callable[[Cancel], T]) -> T:
    """As call; the cancel handle that work gets fires when the task is cancelled."""
    cancel = borrow_cancel()
    job = _Job(lambda: work(cancel))
    _pool.submit(job)
    try:
        await job.future
    except asyncio.CancelledError:
        if not job.is_over:
            cancel.fire()
            await job.last()
        raise
    finally:
        return_cancel(cancel)
    return job.result()


def close_later(made: Sandbox | Process | Watch) -> None:
    _pool.submit(made.close)


def on_loop(function: F | None) -> F | None:
    """The function for use on another thread: it runs on the event loop, and the thread waits for
    it. It may be a coroutine function."""
    if function is None:
        return None
    loop, wanted = asyncio.get_running_loop(), function

    async def run(*args: Any) -> object:
        value = wanted(*args)
        return await value if inspect.isawaitable(value) else value

    def relay(*args: Any) -> object:
        return asyncio.run_coroutine_threadsafe(run(*args), loop).result()

    return cast(F, relay)


class AsyncStream:
    """Asynchronous iterator over the output of a running command."""

    def __init__(self, run: Run) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._running = Running(run, self._changed)

    def _changed(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._wake.set)
        except RuntimeError:
            pass  # the loop is closed

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> Chunk:
        running = self._running
        while True:
            self._wake.clear()
            with running.changed:
                chunk, done = running.poll(), running.done
            if chunk is not None:
                return chunk
            if done:
                running.check()
                raise StopAsyncIteration
            try:
                await self._wake.wait()
            except asyncio.CancelledError:
                await self.close()
                raise

    async def result(self) -> ExecResult:
        """The result; reads the rest of the output first if there is some."""
        async for _ in self:
            pass
        return self._running.result()

    async def close(self) -> None:
        """Ends the command if it still runs, and waits for its end."""
        self._running.stop()
        while not self._running.done:
            self._wake.clear()
            if not self._running.done:
                await self._wake.wait()

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __del__(self) -> None:
        if hasattr(self, "_running"):
            self._running.stop()


class ProcessBase:
    """What AsyncProcess has besides its generated methods."""

    _sync: Process

    @classmethod
    def _of(cls: type[P], process: Process) -> P:
        made = cls.__new__(cls)
        made._sync = process
        return made

    @property
    def pid(self) -> int:
        """Its number in the sandbox."""
        return self._sync.pid

    async def close(self) -> None:
        """Frees the handle."""
        await call(self._sync.close)

    async def __aenter__(self: P) -> P:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class WatchBase:
    """What AsyncWatch has besides its generated methods."""

    _sync: Watch

    @classmethod
    def _of(cls: type[W], watch: Watch) -> W:
        made = cls.__new__(cls)
        made._sync = watch
        return made

    async def close(self) -> None:
        """Ends watching."""
        await call(self._sync.close)

    def __aiter__(self: W) -> W:
        return self

    async def __anext__(self) -> Event:
        try:
            return await call_cancellable(lambda cancel: self._sync.next(cancel=cancel))
        except Error as error:
            if error.code in ("gone", "not_found"):
                raise StopAsyncIteration from None
            raise

    async def __aenter__(self: W) -> W:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class SandboxBase:
    """What AsyncSandbox has besides its generated methods.

        async with AsyncSandbox(workspace="project") as sb:
            print((await sb.sh("make test")).output)

    `await AsyncSandbox(...)` opens it without a block."""

    def __init__(self, **options: Unpack[SandboxOptions]) -> None:
        self._options = options
        self._opened: Sandbox | None = None

    @classmethod
    def _of(cls: type[S], sandbox: Sandbox) -> S:
        made = cls()
        made._opened = sandbox
        return made

    @property
    def _sync(self) -> Sandbox:
        if self._opened is None:
            raise make("invalid", "this sandbox is not open",
                       hint="async with AsyncSandbox(...), or await AsyncSandbox(...)")
        return self._opened

    async def _open(self: S) -> S:
        if self._opened is None:
            self._opened = await call(lambda: Sandbox(**self._options), close_later)
        return self

    def __await__(self: S) -> Generator[Any, None, S]:
        return self._open().__await__()

    @classmethod
    async def connect(cls: type[S], id: str) -> S:
        """A handle of a detached sandbox, by its id or name."""
        return cls._of(await call(lambda: Sandbox.connect(id), close_later))

    @property
    def id(self) -> str:
        """For example "jail-1789453380123-k3x9q2c1"."""
        return self._sync.id

    def stream(self, argv: Iterable[Path], **options: Any) -> AsyncStream:
        """As exec, with the output as an asynchronous iterator of chunks; the command waits while
        the consumer does not take them. Closing the stream, or cancelling the task that reads it,
        ends the command."""
        words, sandbox = list(argv), self._sync
        return AsyncStream(lambda put, cancel: sandbox.exec(words, on_output=put, cancel=cancel,
                                                            **options))

    def stream_sh(self, command: Path, **options: Any) -> AsyncStream:
        """As sh, with the output as an asynchronous iterator: see stream."""
        sandbox = self._sync
        return AsyncStream(lambda put, cancel: sandbox.sh(command, on_output=put, cancel=cancel,
                                                          **options))

    def on_denial(self, function: Callable[[Denial], object] | None) -> None:
        """Sets the function that destroy, and close of a sandbox that is not detached, call for
        each denial that belongs to no result. It runs on the event loop."""
        self._sync.on_denial(on_loop(function))

    async def close(self) -> None:
        """Ends running calls and frees the handle. A sandbox that is not detached ends."""
        if self._opened is not None:
            await call(self._opened.close)

    async def __aenter__(self: S) -> S:
        return await self._open()

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
