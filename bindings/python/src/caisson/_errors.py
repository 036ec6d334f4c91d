"""_errors.py: the exceptions."""
from __future__ import annotations

import builtins
from typing import Any

from ._constants import CODES, Code
from ._library import ffi, lib
from ._results import Denial, denial, text


class Error(Exception):
    """A call failed. `code` is a word such as "not_found"; the message says what was attempted,
    on what and why it failed; `hint`, if there is one, what to do about it."""

    code: Code
    message: str
    op: str | None
    path: str | None
    hint: str | None
    errno: int | None
    denial: Denial | None

    def __init__(self, code: Code, message: str, *, op: str | None = None,
                 path: str | None = None, hint: str | None = None, errno: int | None = None,
                 denial: Denial | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.op, self.path = code, message, op, path
        self.hint, self.errno, self.denial = hint, errno, denial

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message} (hint: {self.hint})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.code, self.message, self.op, self.path, self.hint, self.errno,
                          self.denial)


class NotFound(Error, FileNotFoundError):
    """`not_found`: also a FileNotFoundError."""


class Exists(Error, FileExistsError):
    """`exists`: also a FileExistsError."""


class Denied(Error, PermissionError):
    """`denied` and `outside`: also a PermissionError. `denial` has the rule."""


class TimedOut(Error, builtins.TimeoutError):
    """`timeout` of a call: also a TimeoutError. A command that runs out of time is a result."""


_CLASSES: dict[str, type[Error]] = {"not_found": NotFound, "exists": Exists, "denied": Denied,
                                    "outside": Denied, "timeout": TimedOut}


def make(code: Code, message: str, **rest: Any) -> Error:
    """The exception of the class that belongs to the code."""
    return _CLASSES.get(code, Error)(code, message, **rest)


def _rebuild(code: Code, message: str, op: str | None, path: str | None, hint: str | None,
             errno: int | None, why: Denial | None) -> Error:
    return make(code, message, op=op, path=path, hint=hint, errno=errno, denial=why)


def take(status: int, error: Any) -> Error:
    """The exception for a C error (csn_error **), which is freed."""
    e = error[0]
    if not e:
        return make(CODES.get(status, "internal"), text(lib.csn_status_text(status)) or "")
    why = lib.csn_error_denial(e)
    found = make(CODES.get(status, "internal"), text(lib.csn_error_message(e)) or "",
                 op=text(lib.csn_error_op(e)), path=text(lib.csn_error_path(e)),
                 hint=text(lib.csn_error_hint(e)), errno=lib.csn_error_errno(e) or None,
                 denial=denial(why) if why else None)
    lib.csn_error_free(e)
    error[0] = ffi.NULL
    return found
