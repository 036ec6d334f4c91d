"""_sandbox.py: Sandbox, one handle of a sandbox."""
from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from . import _callbacks as callbacks
from ._commands import Commands
from ._constants import CLEANUP_FORCE, OP_DELETE, OP_EXEC, OP_NET, OP_READ, OP_WRITE
from ._encode import Keeper, Path, fsname, optional
from ._errors import take
from ._files import Files
from ._handle import Handle, close_at_exit
from ._library import ffi, lib
from ._results import Denial, Info, NetResult, Verdict, info, net, text, verdict
from ._workspace import Workspace

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import SandboxOptions

S = TypeVar("S", bound="Sandbox")
Op = Literal["read", "write", "delete", "exec", "net"]
_OPS = {"read": OP_READ, "write": OP_WRITE, "delete": OP_DELETE, "exec": OP_EXEC, "net": OP_NET}
_SANDBOX, _ERR = ffi.typeof("csn_sandbox **"), ffi.typeof("csn_error **")


def _plain(value: Any) -> Any:
    """For JSON: paths as text."""
    if isinstance(value, (bytes, os.PathLike)):
        return os.fsdecode(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"an option cannot be a {type(value).__name__}")


def _open(options: dict[str, Any]) -> Any:
    given = {name: value for name, value in options.items() if value is not None}
    encoded = json.dumps(given, default=_plain).encode()
    config, ret, err = ffi.new("csn_config **"), ffi.new(_SANDBOX), ffi.new(_ERR)
    status = lib.csn_config_parse(encoded, len(encoded), b"options", config, err)
    if status == 0:
        try:
            status = lib.csn_open(config[0], ret, err)
        finally:
            lib.csn_config_free(config[0])
    if status < 0:
        raise take(status, err)
    return ret[0]


class Sandbox(Commands, Files, Workspace):
    """A sandbox. Options are the keys of `caisson policy schema`; the default is a jail on the
    current directory, without a network:

        with Sandbox(workspace="project", network={"allow": ["pypi.org"]}) as sb:
            print(sb.sh("make test").output)

    Threads may share one. Closing it ends the sandbox, unless it is detached."""

    def __init__(self, **options: Unpack[SandboxOptions]) -> None:
        self._adopt(_open(dict(options)))

    def _adopt(self, pointer: Any) -> None:
        self._handle = Handle(pointer, lib.csn_close)
        self._id = text(lib.csn_id(pointer)) or ""
        close_at_exit(self._handle)

    @classmethod
    def _of(cls: type[S], pointer: Any) -> S:
        made = cls.__new__(cls)
        made._adopt(pointer)
        return made

    @classmethod
    def connect(cls: type[S], id: str) -> S:
        """A handle of a detached sandbox, by its id or name."""
        ret, err = ffi.new(_SANDBOX), ffi.new(_ERR)
        status = lib.csn_connect(fsname(id), ret, err)
        if status < 0:
            raise take(status, err)
        return cls._of(ret[0])

    @property
    def id(self) -> str:
        """For example "jail-1789453380123-k3x9q2c1"."""
        return self._id

    def info(self) -> Info:
        """What the sandbox is, where its directories are, and what it enforces."""
        found = self._handle.ask(ffi.typeof("csn_info_result **"), lib.csn_info)
        try:
            return info(found)
        finally:
            lib.csn_info_free(found)

    def fork(self: S, name: str | None = None) -> S:
        """Another sandbox with the same files and configuration."""
        return type(self)._of(self._handle.ask(_SANDBOX, lib.csn_fork, optional(name)))

    def set_workdir(self, path: Path) -> None:
        """Changes the directory that commands and relative paths start from."""
        self._handle.call(lib.csn_set_workdir, fsname(path))

    def cleanup(self, *, force: bool = False) -> None:
        """Removes everything in the workspace. A directory that existed before the sandbox needs
        force; else Denied."""
        self._handle.call(lib.csn_cleanup_with, CLEANUP_FORCE * force)

    def extend(self, ms: int) -> None:
        """Sets the end of the sandbox to so many milliseconds from now."""
        self._handle.call(lib.csn_extend, ms)

    def pause(self) -> None:
        """Suspends all processes and the lifetime until resume or connect."""
        self._handle.call(lib.csn_pause)

    def resume(self) -> None:
        """Ends a pause."""
        self._handle.call(lib.csn_resume)

    def network(self, since: int = 0) -> NetResult:
        """The network rules, and the network events from number `since` on."""
        found = self._handle.ask(ffi.typeof("csn_net_result **"), lib.csn_network, since)
        try:
            return net(found)
        finally:
            lib.csn_network_free(found)

    def network_set(self, network: Literal["none", "all"] | None = None, *,
                    net_allow: Iterable[str] | None = None,
                    net_deny: Iterable[str] | None = None,
                    packages: Iterable[str] | None = None) -> None:
        """Replaces all network rules. Connections that the new ones do not allow are cut."""
        keeper, opts = Keeper(), ffi.new("csn_net_opts *")
        opts.size = ffi.sizeof("csn_net_opts")
        if network is not None:
            opts.network = keeper.string(network)
        if net_allow is not None:
            opts.net_allow = keeper.strings(net_allow)
        if net_deny is not None:
            opts.net_deny = keeper.strings(net_deny)
        if packages is not None:
            opts.packages = keeper.strings(packages)
        self._handle.call(lib.csn_network_set, opts)

    def would_allow(self, op: Op, target: Path) -> Verdict:
        """Checks an operation on a path, command or host against the policy, without doing it."""
        if op not in _OPS:
            raise ValueError(f"op: {op!r} is not one of {', '.join(_OPS)}")
        found = self._handle.ask(ffi.typeof("csn_verdict **"), lib.csn_would_allow, _OPS[op],
                                 fsname(target))
        try:
            return verdict(found)
        finally:
            lib.csn_verdict_free(found)

    def on_denial(self, function: Callable[[Denial], object] | None) -> None:
        """Sets the function that destroy, and close of a sandbox that is not detached, call for
        each denial that belongs to no result. It must not use the sandbox."""
        call = None if function is None else callbacks.denials(function)
        pointer = self._handle.enter()
        try:
            if call is None:
                lib.csn_on_denial(pointer, ffi.NULL, ffi.NULL)
            else:
                lib.csn_on_denial(pointer, callbacks.denial_fn(), call.context)
            self._handle.kept["on_denial"] = call
        finally:
            self._handle.leave()

    def destroy(self) -> None:
        """Ends every process and removes the sandbox. Later calls are `gone`. Harmless when
        repeated."""
        self._handle.call(lib.csn_destroy)

    def reset(self) -> None:
        """As destroy, but the next call opens a new sandbox with the same id. Only for backends
        with the capability lazy."""
        self._handle.call(lib.csn_reset)

    def close(self) -> None:
        """Ends running calls and frees the handle. A sandbox that is not detached ends."""
        self._handle.close()

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        handle: Handle | None = getattr(self, "_handle", None)
        if handle is not None and not handle.closed:
            if handle.is_own():
                warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self)
            handle.close()

    def __reduce__(self) -> Any:
        raise TypeError("a Sandbox cannot be pickled; pass the id of a detached one and use "
                        "Sandbox.connect")

    def __repr__(self) -> str:
        return f"<caisson.{type(self).__name__} {self._id}>"
