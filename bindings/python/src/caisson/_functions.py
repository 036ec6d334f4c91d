"""_functions.py: calls that need no sandbox."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _callbacks as callbacks
from ._constants import ASIDE_REPLACE
from ._encode import Path, fsname, optional
from ._errors import take
from ._library import ffi, lib
from ._results import (AsideEntry, AuditLog, AuditReport, Denial, DoctorResult, SandboxEntry,
                       aside_entries, audit_logs as _audit_logs, audit_report, doctor as _doctor,
                       sandbox_entries, text)

_ERR = ffi.typeof("csn_error **")
_kept: dict[str, Any] = {}


def _call(function: Any, *args: Any) -> None:
    err = ffi.new(_ERR)
    status = function(*args, err)
    if status < 0:
        raise take(status, err)


def _ask(kind: str, function: Any, *args: Any) -> Any:
    ret = ffi.new(kind)
    _call(function, *args, ret)
    return ret[0]


def version() -> str:
    """The version of the library."""
    return text(lib.csn_version()) or ""


def set_log(function: Callable[[str], object] | None) -> None:
    """Sets the function that gets debug lines of the library, from any thread. Set it before any
    other call."""
    call = None if function is None else callbacks.Call(
        lambda line, tell=function: tell(text(line) or ""))
    if call is None:
        lib.csn_set_log(ffi.NULL, ffi.NULL)
    else:
        lib.csn_set_log(callbacks.log_fn(), call.context)
    _kept["log"] = call


def sandboxes() -> list[SandboxEntry]:
    """The detached sandboxes of this user, oldest first."""
    found = _ask("csn_sandbox_list **", lib.csn_sandboxes)
    try:
        return sandbox_entries(found.items, found.count)
    finally:
        lib.csn_sandbox_list_free(found)


def destroy_id(id: str, *, on_denial: Callable[[Denial], object] | None = None) -> None:
    """Destroys a sandbox by id or name. NotFound for an unknown name; one that has ended is no
    error."""
    if on_denial is None:
        _call(lib.csn_destroy_id, fsname(id))
        return
    call = callbacks.denials(on_denial)
    try:
        _call(lib.csn_destroy_id_report, fsname(id), callbacks.denial_fn(), call.context)
    finally:
        call.check()


def doctor(workspace: Path | None = None) -> DoctorResult:
    """Checks which parts of the backend `jail` work on this host."""
    found = _ask("csn_doctor_result **", lib.csn_doctor, optional(workspace))
    try:
        return _doctor(found)
    finally:
        lib.csn_doctor_result_free(found)


# ---- audit logs ----

def _read_lines(function: Any, name: bytes, on_line: Callable[[str], object] | None) -> list[str]:
    lines: list[str] = []
    call, err = callbacks.lines(lines.append if on_line is None else on_line), ffi.new(_ERR)
    status = function(name, callbacks.line_fn(), call.context, err)
    error = take(status, err) if status < 0 else None
    call.check()
    if error is not None:
        raise error
    return lines


def audit_read(id: str, on_line: Callable[[str], object] | None = None) -> list[str]:
    """The lines (JSON) of a sandbox's audit log, by id or name, also after it has ended. With
    on_line each line goes to that function instead."""
    return _read_lines(lib.csn_audit_read, fsname(id), on_line)


def audit_read_file(path: Path, on_line: Callable[[str], object] | None = None) -> list[str]:
    """As audit_read, for the log at a path."""
    return _read_lines(lib.csn_audit_read_file, fsname(path), on_line)


def _report(found: Any) -> AuditReport:
    try:
        return audit_report(found)
    finally:
        lib.csn_audit_report_free(found)


def audit_verify(id: str) -> AuditReport:
    """Recomputes the hash chain of a sandbox's audit log."""
    return _report(_ask("csn_audit_report **", lib.csn_audit_verify, fsname(id)))


def audit_verify_file(path: Path) -> AuditReport:
    """As audit_verify, for the log at a path."""
    return _report(_ask("csn_audit_report **", lib.csn_audit_verify_file, fsname(path)))


def audit_logs() -> list[AuditLog]:
    """The audit logs of this user at the default place, the last written one last."""
    found = _ask("csn_audit_logs_result **", lib.csn_audit_logs)
    try:
        return _audit_logs(found.items, found.count)
    finally:
        lib.csn_audit_logs_free(found)


def audit_remove(id: str) -> None:
    """Removes the log of a sandbox that has ended; `conflict` if it has not."""
    _call(lib.csn_audit_remove, fsname(id))


def forget(id: str) -> None:
    """Removes the record of a sandbox in the state "unknown", and nothing else."""
    _call(lib.csn_forget, fsname(id))


# ---- files that were moved away ----

def aside_list() -> list[AsideEntry]:
    """The protected files that were moved out of workspaces of this user."""
    found = _ask("csn_aside_list_result **", lib.csn_aside_list)
    try:
        return aside_entries(found.items, found.count)
    finally:
        lib.csn_aside_list_free(found)


def aside_restore(id: str, *, replace: bool = False) -> None:
    """Moves one back to where it was. Programs of the host may run it from then on."""
    _call(lib.csn_aside_restore, fsname(id), ASIDE_REPLACE * replace)


def aside_remove(id: str) -> None:
    """Deletes one."""
    _call(lib.csn_aside_remove, fsname(id))
