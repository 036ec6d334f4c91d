"""One sandbox interface for AI agents: commands and files, on this machine or elsewhere."""
from . import aio
from ._aio import AsyncProcess, AsyncSandbox, AsyncWatch
from ._backend import Backend, BackendRequest, BackendResult, register_backend
from ._bridge import AsyncStream
from ._callbacks import Sink, Source
from ._constants import NO_LIMIT, Code
from ._encode import Data, Path
from ._errors import Denied, Error, Exists, NotFound, TimedOut
from ._files import Edit, FileContent
from ._functions import (aside_list, aside_remove, aside_restore, audit_logs, audit_read,
                         audit_read_file, audit_remove, audit_verify, audit_verify_file, destroy_id,
                         doctor, forget, sandboxes, set_log, version)
from ._handle import Cancel
from ._options import Limits, Network, SandboxOptions
from ._process import Process, Watch
from ._results import (AsideEntry, AuditLog, AuditReport, Change, Check, CommitResult, Conflict,
                       Denial, DiffResult, DoctorResult, EditResult, Event, ExecResult, FileInfo,
                       FileList, GrepMatch, GrepResult, Info, Layer, LogChunk, NetEvent, NetResult,
                       ProcessInfo, ReadResult, RuleInfo, SandboxEntry, SnapshotEntry,
                       SnapshotResult, Verdict, WriteResult)
from ._sandbox import Sandbox
from ._stream import Chunk, Stream

__version__ = version()
__all__ = ["AsideEntry", "AsyncProcess", "AsyncSandbox", "AsyncStream", "AsyncWatch",
           "AuditLog", "AuditReport", "Backend", "BackendRequest", "BackendResult", "Cancel",
           "Change", "Check", "Chunk", "Code", "CommitResult", "Conflict", "Data", "Denial",
           "Denied", "DiffResult", "DoctorResult", "Edit", "EditResult", "Error", "Event",
           "ExecResult", "Exists", "FileContent", "FileInfo", "FileList", "GrepMatch",
           "GrepResult", "Info", "Layer", "Limits", "LogChunk", "NO_LIMIT", "NetEvent",
           "NetResult", "Network", "NotFound", "Path", "Process", "ProcessInfo", "ReadResult",
           "RuleInfo", "Sandbox", "SandboxEntry", "SandboxOptions", "Sink", "SnapshotEntry",
           "SnapshotResult", "Source", "Stream", "TimedOut", "Verdict", "Watch", "WriteResult",
           "aio", "aside_list", "aside_remove", "aside_restore", "audit_logs", "audit_read",
           "audit_read_file", "audit_remove", "audit_verify", "audit_verify_file", "destroy_id", "forget",
           "doctor", "register_backend", "sandboxes", "set_log", "version"]
