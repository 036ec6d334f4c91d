"""_library.py: loads libcaisson.so of this package.

The programs and modules of caisson lie beside the library, which finds them by its own path. No
variable of the environment has a say in what is loaded. libpcre2, which the library needs, is
carried along: it is loaded first, so that the one of the system need not exist.
"""
from __future__ import annotations

import os
import pathlib
import threading
from typing import Any

from ._abi import ffi as _ffi

ffi: Any = _ffi
#: The directory with the library and the programs.
HOME = pathlib.Path(__file__).resolve().parent / "_lib"


def _load() -> Any:
    for needed in sorted(HOME.glob("libpcre2-8.so*")):
        _needed.append(ffi.dlopen(str(needed)))
    return ffi.dlopen(str(HOME / "libcaisson.so"))


_needed: list[Any] = []
lib: Any = _load()


class Process:
    """The process that this code runs in. `forks` changes with each fork, in the child: a handle
    that was made with another value belongs to the parent."""

    forks = 0
    main_thread = threading.main_thread().ident


def _forked() -> None:
    Process.forks += 1
    Process.main_thread = threading.main_thread().ident


os.register_at_fork(after_in_child=_forked)
