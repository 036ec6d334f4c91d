"""Results of the library, and what makes them of C structs. Generated: do not edit."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ._abi import ffi

_string: Callable[[Any], bytes] = ffi.string
_unpack: Callable[[Any, int], Any] = ffi.unpack
_FS = sys.getfilesystemencoding()


def text(p: Any) -> str | None:
    """A C string, decoded as os.fsdecode does."""
    return _string(p).decode(_FS, "surrogateescape") if p else None


def _str(p: Any) -> str:
    return _string(p).decode(_FS, "surrogateescape") if p else ""


def _raw(p: Any, size: int) -> bytes:
    return bytes(_unpack(p, size)) if size else b""


def _some(p: Any, size: int) -> bytes | None:
    return bytes(_unpack(p, size)) if p else None


def strings(p: Any) -> list[str]:
    """A NULL-terminated list."""
    found: list[str] = []
    while p and p[len(found)]:
        found.append(_str(p[len(found)]))
    return found


CSN_CHANGE_KIND: dict[int, str | None] = {1: 'added', 2: 'deleted', 3: 'modified', 4: 'meta', 5: 'type'}
CSN_COMMIT_OUTCOME: dict[int, str | None] = {0: None, 1: 'applied', 2: 'merged', 3: 'same', 4: 'conflict', 5: 'kept', 6: 'held'}
EVENT_KINDS: dict[int, str] = {1: 'create', 2: 'modify', 3: 'delete', 4: 'rename', 5: 'overflow'}

_LATER_MAX = 1 << 16


def _later(p: Any) -> Any:
    """The layers of a result: converted when asked for, as they are many and seldom used. A
    result with much output is not kept in memory for them."""
    if p.out.len + p.err.len + p.merged.len > _LATER_MAX:
        return layers(p.layers, p.layer_count)
    return p


@dataclass(slots=True)
class Denial:
    """A refusal: the target as given, the path it resolved to, the rule that refused it,
    the source of the rule, and the smallest rule that would allow it. Every field except op
    may be NULL."""

    #: read, write, delete, exec, env, net, limit, syscall
    op: str
    target: str | None
    resolved: str | None
    rule: str | None
    source: str | None
    hint: str | None


def denial(p: Any) -> Denial:
    return Denial(
        _str(p.op),
        text(q) if (q := p.target) else None,
        text(q) if (q := p.resolved) else None,
        text(q) if (q := p.rule) else None,
        text(q) if (q := p.source) else None,
        text(q) if (q := p.hint) else None,
    )


def denials(p: Any, count: int) -> list[Denial]:
    return [denial(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class Layer:
    """The C struct is csn_layer."""

    #: user, mount, pid, net, limits, landlock, seccomp, files, exec ...
    name: str
    #: "on", "off", "weaker"; for net also "transparent", "proxy"
    status: str
    #: one sentence
    detail: str


def layer(p: Any) -> Layer:
    return Layer(
        _str(p.name),
        _str(p.status),
        _str(p.detail),
    )


def layers(p: Any, count: int) -> list[Layer]:
    return [layer(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class RuleInfo:
    """A denied path, a rule of the config, or a place of keys that a jail hides."""

    #: "deny .env", "deny write,delete LICENSE", "hide /home/me/.ssh"
    rule: str
    #: "config.deny[0]", "keys of the home: private keys of ssh"
    source: str
    #: by what, for commands: "mount ...", "file calls only" ...
    enforced: str


def rule_info(p: Any) -> RuleInfo:
    return RuleInfo(
        _str(p.rule),
        _str(p.source),
        _str(p.enforced),
    )


def rule_infos(p: Any, count: int) -> list[RuleInfo]:
    return [rule_info(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class Info:
    """The C struct is csn_info_result."""

    detached: bool
    id: str
    #: or NULL
    name: str | None
    backend: str
    #: "new", "running", "gone"
    state: str
    #: "none", "kernel", "container", "microvm", "custom"
    isolation: str
    #: host directory, or NULL
    workspace: str | None
    #: as the agent names it
    workdir: str | None
    #: as the agent names it
    home: str | None
    #: ripgrep inside, or NULL
    rg_path: str | None
    #: words, NULL-terminated: calls that work here, native or derived
    capabilities: list[str]
    layers: list[Layer]
    #: since the epoch
    created_ms: int
    #: 0: never
    expires_ms: int
    #: 0: none yet
    keeper_pid: int
    rules: list[RuleInfo]
    #: read_dirs: those only to be read
    write_dirs: list[str]
    #: read_dirs: those only to be read
    read_dirs: list[str]


def info(p: Any) -> Info:
    return Info(
        p.detached != 0,
        _str(p.id),
        text(q) if (q := p.name) else None,
        _str(p.backend),
        _str(p.state),
        _str(p.isolation),
        text(q) if (q := p.workspace) else None,
        text(q) if (q := p.workdir) else None,
        text(q) if (q := p.home) else None,
        text(q) if (q := p.rg_path) else None,
        strings(p.capabilities),
        layers(p.layers, p.layer_count),
        p.created_ms,
        p.expires_ms,
        p.keeper_pid,
        rule_infos(p.rules, p.rule_count),
        strings(p.write_dirs),
        strings(p.read_dirs),
    )


def infos(p: Any, count: int) -> list[Info]:
    return [info(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class SandboxEntry:
    """The C struct is csn_sandbox_entry."""

    id: str
    #: or NULL
    name: str | None
    backend: str
    #: "running", "starting", "not answering", "other version", "other boot", "other host",
    #: "unknown": see list in caisson(1)
    state: str
    workspace: str | None
    created_ms: int
    #: the id of the sandbox that csn_fork copied, or NULL
    forked_from: str | None


def sandbox_entry(p: Any) -> SandboxEntry:
    return SandboxEntry(
        _str(p.id),
        text(q) if (q := p.name) else None,
        _str(p.backend),
        _str(p.state),
        text(q) if (q := p.workspace) else None,
        p.created_ms,
        text(q) if (q := p.forked_from) else None,
    )


def sandbox_entries(p: Any, count: int) -> list[SandboxEntry]:
    return [sandbox_entry(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class ExecResult:
    """The C struct is csn_exec_result."""

    #: None: unknown or ended by a signal
    exit_code: int | None
    #: "SIGKILL", or NULL
    signal: str | None
    #: the kept part, as bytes
    stdout_bytes: bytes
    #: bytes written, kept or not
    stdout_total: int
    #: so many of the kept bytes are the start of the output, the rest its end
    stdout_head: int
    #: the kept part, as bytes
    stderr_bytes: bytes
    #: bytes written, kept or not
    stderr_total: int
    #: so many of the kept bytes are the start of the output, the rest its end
    stderr_head: int
    #: the kept part, as bytes
    output_bytes: bytes
    #: bytes written, kept or not
    output_total: int
    #: so many of the kept bytes are the start of the output, the rest its end
    output_head: int
    duration_ms: float
    timed_out: bool
    #: by timeout or cancel
    interrupted: bool
    #: not started, non-zero exit, or ended by a signal
    failed: bool
    truncated: bool
    #: "bytes" or NULL
    truncated_by: str | None
    #: timeout cancel memory pids cpu disk policy signal, or NULL
    killed_by: str | None
    cpu_ms: float
    #: bytes
    peak_memory: int
    denials: list[Denial]
    _layers: Any = field(repr=False, compare=False)
    #: changes could not all be checked for protected files; see denials
    unchecked: bool
    #: the id of the sandbox
    sandbox: str

    @property
    def stdout(self) -> str:
        """stdout_bytes as text: UTF-8, invalid bytes replaced."""
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """stderr_bytes as text: UTF-8, invalid bytes replaced."""
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def output(self) -> str:
        """output_bytes as text: UTF-8, invalid bytes replaced."""
        return self.output_bytes.decode("utf-8", "replace")

    @property
    def layers(self) -> list[Layer]:
        """What was enforced."""
        if not isinstance(self._layers, list):
            self._layers = layers(self._layers.layers, self._layers.layer_count)
        found: list[Layer] = self._layers
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        self.layers
        return type(self), tuple(getattr(self, n) for n in self.__slots__)


def exec(p: Any) -> ExecResult:
    out = p.out
    err = p.err
    merged = p.merged
    return ExecResult(
        None if p.exit_code < 0 else p.exit_code,
        text(q) if (q := p.signal) else None,
        _raw(out.data, out.len),
        out.total,
        out.head,
        _raw(err.data, err.len),
        err.total,
        err.head,
        _raw(merged.data, merged.len),
        merged.total,
        merged.head,
        p.duration_ms,
        p.timed_out != 0,
        p.interrupted != 0,
        p.failed != 0,
        p.truncated != 0,
        text(q) if (q := p.truncated_by) else None,
        text(q) if (q := p.killed_by) else None,
        p.cpu_ms,
        p.peak_memory,
        denials(p.denials, p.denial_count),
        _later(p),
        p.unchecked != 0,
        _str(p.sandbox),
    )


def execs(p: Any, count: int) -> list[ExecResult]:
    return [exec(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class ProcessInfo:
    """The C struct is csn_process_info."""

    pid: int
    command: str
    #: "running", "exited"
    state: str
    #: None: running, unknown or signalled
    exit_code: int | None
    #: or NULL
    signal: str | None
    out_total: int
    err_total: int
    started_ms: int
    pty: bool
    #: set by Process.wait: protected files moved to the quarantine
    denials: list[Denial] = field(default_factory=list)


def process_info(p: Any) -> ProcessInfo:
    return ProcessInfo(
        p.pid,
        _str(p.command),
        _str(p.state),
        None if p.exit_code < 0 else p.exit_code,
        text(q) if (q := p.signal) else None,
        p.out_total,
        p.err_total,
        p.started_ms,
        p.pty != 0,
    )


def process_infos(p: Any, count: int) -> list[ProcessInfo]:
    return [process_info(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class LogChunk:
    """The C struct is csn_log_chunk."""

    data: bytes
    #: of data[0] in the stream
    offset: int
    #: bytes between the requested offset and `offset` that were dropped
    dropped: int
    #: written so far
    total: int
    #: the stream has ended
    end: bool

    @property
    def text(self) -> str:
        """data as text: UTF-8, invalid bytes replaced."""
        return self.data.decode("utf-8", "replace")


def log_chunk(p: Any) -> LogChunk:
    return LogChunk(
        _raw(p.data, p.len),
        p.offset,
        p.dropped,
        p.total,
        p.end != 0,
    )


def log_chunks(p: Any, count: int) -> list[LogChunk]:
    return [log_chunk(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class FileInfo:
    """The C struct is csn_file_info."""

    #: list: the name; glob: relative to PATH; stat: as given
    path: str
    #: of a symlink, else NULL
    target: str | None
    file_size: int
    #: since the epoch
    modified_ns: int
    #: permission bits and type, as in st_mode
    mode: int
    is_dir: bool
    is_symlink: bool
    nlink: int


def file_info(p: Any) -> FileInfo:
    return FileInfo(
        _str(p.path),
        text(q) if (q := p.target) else None,
        p.file_size,
        p.modified_ns,
        p.mode,
        p.is_dir != 0,
        p.is_symlink != 0,
        p.nlink,
    )


def file_infos(p: Any, count: int) -> list[FileInfo]:
    return [file_info(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class FileList:
    """The C struct is csn_file_list."""

    items: list[FileInfo]
    #: over the limit: items are the first `count` in directory order
    truncated: bool

    def __iter__(self) -> Iterator[FileInfo]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> FileInfo:
        return self.items[index]

    def __bool__(self) -> bool:
        return True


def file_list(p: Any) -> FileList:
    return FileList(
        file_infos(p.items, p.count),
        p.truncated != 0,
    )


def file_lists(p: Any, count: int) -> list[FileList]:
    return [file_list(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class ReadResult:
    """The C struct is csn_read_result."""

    #: then content is the file's bytes and mime_type is set
    is_image: bool
    content_bytes: bytes
    #: or NULL
    mime_type: str | None
    #: of the file
    bytes: int
    total_lines: int
    output_lines: int
    #: 0: the file is so large that counting stopped early
    total_lines_exact: bool
    truncated: bool
    #: "lines", "bytes" or NULL
    truncated_by: str | None
    #: with CSN_FILE_HASH: SHA-256 of the file; NULL when not read whole
    hash: str | None

    @property
    def content(self) -> str:
        """content_bytes as text: UTF-8, invalid bytes replaced."""
        return self.content_bytes.decode("utf-8", "replace")


def read(p: Any) -> ReadResult:
    return ReadResult(
        p.is_image != 0,
        _raw(p.content, p.content_len),
        text(q) if (q := p.mime_type) else None,
        p.bytes,
        p.total_lines,
        p.output_lines,
        p.total_lines_exact != 0,
        p.truncated != 0,
        text(q) if (q := p.truncated_by) else None,
        text(q) if (q := p.hash) else None,
    )


def reads(p: Any, count: int) -> list[ReadResult]:
    return [read(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class WriteResult:
    """The C struct is csn_write_result."""

    #: as given
    path: str
    resolved_path: str | None
    bytes: int
    #: SHA-256 of the new content; NULL after append
    hash: str | None
    #: if the file is in a private place, which ends with the sandbox
    note: str | None


def write(p: Any) -> WriteResult:
    return WriteResult(
        _str(p.path),
        text(q) if (q := p.resolved_path) else None,
        p.bytes,
        text(q) if (q := p.hash) else None,
        text(q) if (q := p.note) else None,
    )


def writes(p: Any, count: int) -> list[WriteResult]:
    return [write(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class EditResult:
    """The C struct is csn_edit_result."""

    path: str
    resolved_path: str | None
    #: replaced, over all edits
    occurrences: int
    bytes: int
    hash: str | None


def edit(p: Any) -> EditResult:
    return EditResult(
        _str(p.path),
        text(q) if (q := p.resolved_path) else None,
        p.occurrences,
        p.bytes,
        text(q) if (q := p.hash) else None,
    )


def edits(p: Any, count: int) -> list[EditResult]:
    return [edit(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class GrepMatch:
    """The C struct is csn_grep_match."""

    #: relative to opts.path; for a single file as given
    path: str
    #: 1-based
    line: int
    #: without the newline
    text_bytes: bytes
    #: a line around a match
    is_context: bool

    @property
    def text(self) -> str:
        """text_bytes as text: UTF-8, invalid bytes replaced."""
        return self.text_bytes.decode("utf-8", "replace")


def grep_match(p: Any) -> GrepMatch:
    return GrepMatch(
        _str(p.path),
        p.line,
        _raw(p.text, p.text_len),
        p.is_context != 0,
    )


def grep_matchs(p: Any, count: int) -> list[GrepMatch]:
    return [grep_match(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class GrepResult:
    """The C struct is csn_grep_result."""

    items: list[GrepMatch]
    #: max was reached
    truncated: bool

    def __iter__(self) -> Iterator[GrepMatch]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> GrepMatch:
        return self.items[index]

    def __bool__(self) -> bool:
        return True


def grep(p: Any) -> GrepResult:
    return GrepResult(
        grep_matchs(p.items, p.count),
        p.truncated != 0,
    )


def greps(p: Any, count: int) -> list[GrepResult]:
    return [grep(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class Event:
    """The C struct is csn_event."""

    #: create, modify, delete, rename (path is the new name), or overflow (events were lost:
    #: list the directory again)
    kind: str
    is_dir: bool
    #: relative to the watched directory
    path: str


def event(p: Any) -> Event:
    return Event(
        EVENT_KINDS.get(p.kind, 'unknown'),
        p.is_dir != 0,
        _str(p.path),
    )


def events(p: Any, count: int) -> list[Event]:
    return [event(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class NetEvent:
    """The C struct is csn_net_event."""

    seq: int
    #: since the epoch
    time_ms: int
    #: "name", "connect", "close"
    kind: str
    #: "allow", "deny"
    verdict: str
    #: "dns", "tcp", "tls", "http" ... as far as detected
    protocol: str | None
    #: or NULL, here and below
    host: str | None
    address: str | None
    #: the rule that decided
    rule: str | None
    #: refusal: the smallest rule that would have allowed it
    hint: str | None
    #: refusal: the reason, as a sentence
    why: str | None
    #: 0: none
    port: int
    #: bytes out of the sandbox and into it
    up: int
    #: bytes out of the sandbox and into it
    down: int
    #: close: of the connection; connect: time to connect
    duration_ms: int
    #: how often the same refusal occurred; at least 1
    count: int


def net_event(p: Any) -> NetEvent:
    return NetEvent(
        p.seq,
        p.time_ms,
        _str(p.kind),
        _str(p.verdict),
        text(q) if (q := p.protocol) else None,
        text(q) if (q := p.host) else None,
        text(q) if (q := p.address) else None,
        text(q) if (q := p.rule) else None,
        text(q) if (q := p.hint) else None,
        text(q) if (q := p.why) else None,
        p.port,
        p.up,
        p.down,
        p.duration_ms,
        p.count,
    )


def net_events(p: Any, count: int) -> list[NetEvent]:
    return [net_event(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class NetResult:
    """The C struct is csn_net_result."""

    #: "none", "transparent", "proxy"; "off": its gateway has ended
    mode: str
    #: one sentence
    detail: str | None
    network: str | None
    #: NULL-terminated; never NULL, here and below
    net_allow: list[str]
    net_deny: list[str]
    packages: list[str]
    #: oldest first; the number kept is bounded
    events: list[NetEvent]
    #: pass as `since` to the next call
    next: int
    #: number of dropped events
    lost: int


def net(p: Any) -> NetResult:
    return NetResult(
        _str(p.mode),
        text(q) if (q := p.detail) else None,
        text(q) if (q := p.network) else None,
        strings(p.net_allow),
        strings(p.net_deny),
        strings(p.packages),
        net_events(p.events, p.event_count),
        p.next,
        p.lost,
    )


def nets(p: Any, count: int) -> list[NetResult]:
    return [net(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class Verdict:
    """The C struct is csn_verdict."""

    allowed: bool
    #: rule and source are also set if a rule allowed the operation
    why: Denial
    #: what enforces that rule for commands; NULL: not a rule of the config
    enforced: str | None


def verdict(p: Any) -> Verdict:
    return Verdict(
        p.allowed != 0,
        denial(p.why),
        text(q) if (q := p.enforced) else None,
    )


def verdicts(p: Any, count: int) -> list[Verdict]:
    return [verdict(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class Check:
    """The C struct is csn_check."""

    #: user, mount, pid, net, ipc, limits ..., or a directory, a program
    name: str
    #: "ok"; "weaker": a weaker substitute works; "missing"; "info"
    status: str
    #: what was found
    detail: str
    #: how to fix it, a command if possible; or NULL
    fix: str | None


def check(p: Any) -> Check:
    return Check(
        _str(p.name),
        _str(p.status),
        _str(p.detail),
        text(q) if (q := p.fix) else None,
    )


def checks(p: Any, count: int) -> list[Check]:
    return [check(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class DoctorResult:
    """The C struct is csn_doctor_result."""

    #: nothing is missing
    ok: bool
    #: jail on this host: "full", "weaker" (needs ALLOW_WEAKER), "none"
    rung: str
    items: list[Check]
    duration_ms: int

    def __iter__(self) -> Iterator[Check]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Check:
        return self.items[index]

    def __bool__(self) -> bool:
        return True


def doctor(p: Any) -> DoctorResult:
    return DoctorResult(
        p.ok != 0,
        _str(p.rung),
        checks(p.items, p.count),
        p.duration_ms,
    )


def doctors(p: Any, count: int) -> list[DoctorResult]:
    return [doctor(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class SnapshotResult:
    """The C struct is csn_snapshot_result."""

    #: opaque, and valid as `image` of a config of the same backend
    snapshot: str
    #: of csn_snapshot_as, or NULL
    name: str | None
    #: as in csn_snapshot_entry, or NULL
    how: str | None


def snapshot(p: Any) -> SnapshotResult:
    return SnapshotResult(
        _str(p.snapshot),
        text(q) if (q := p.name) else None,
        text(q) if (q := p.how) else None,
    )


def snapshots(p: Any, count: int) -> list[SnapshotResult]:
    return [snapshot(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class SnapshotEntry:
    """The C struct is csn_snapshot_entry."""

    name: str
    #: valid as `image` of a config, as in csn_snapshot_result
    snapshot: str
    created_ms: int
    #: "frozen": nothing was copied; "copied": a command was running, or the workspace is a
    #: copy
    how: str | None
    #: made before a command because of CSN_OPEN_UNDO
    automatic: bool


def snapshot_entry(p: Any) -> SnapshotEntry:
    return SnapshotEntry(
        _str(p.name),
        _str(p.snapshot),
        p.created_ms,
        text(q) if (q := p.how) else None,
        p.automatic != 0,
    )


def snapshot_entries(p: Any, count: int) -> list[SnapshotEntry]:
    return [snapshot_entry(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class Change:
    """The C struct is csn_change."""

    #: relative to the workspace
    path: str
    kind: str | None
    #: st_mode; 0: absent
    mode_before: int
    #: st_mode; 0: absent
    mode_after: int
    size_before: int
    size_after: int
    binary: bool
    #: the host changed it since the sandbox was opened
    host_changed: bool
    #: CSN_DIFF_COUNTS; text only
    lines_added: int
    #: CSN_DIFF_COUNTS; text only
    lines_removed: int
    #: CSN_DIFF_HASHES: SHA-256 in hex; or NULL
    hash_before: str | None
    #: CSN_DIFF_HASHES: SHA-256 in hex; or NULL
    hash_after: str | None
    #: why commit holds it back, or NULL
    held: str | None
    outcome: str | None
    #: of the outcome, or NULL
    why: str | None


def change(p: Any) -> Change:
    return Change(
        _str(p.path),
        CSN_CHANGE_KIND.get(p.kind),
        p.mode_before,
        p.mode_after,
        p.size_before,
        p.size_after,
        p.binary != 0,
        p.host_changed != 0,
        p.lines_added,
        p.lines_removed,
        text(q) if (q := p.hash_before) else None,
        text(q) if (q := p.hash_after) else None,
        text(q) if (q := p.held) else None,
        CSN_COMMIT_OUTCOME.get(p.outcome),
        text(q) if (q := p.why) else None,
    )


def changes(p: Any, count: int) -> list[Change]:
    return [change(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class DiffResult:
    """The C struct is csn_diff_result."""

    #: sorted by path
    changes: list[Change]
    #: or NULL; may contain any byte
    patch: bytes | None


def diff(p: Any) -> DiffResult:
    return DiffResult(
        changes(p.changes, p.count),
        _some(p.patch, p.patch_len),
    )


def diffs(p: Any, count: int) -> list[DiffResult]:
    return [diff(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class Conflict:
    """The versions of a file with a conflict; text NULL: absent, too large, or not
    known."""

    path: str
    why: str
    base: bytes | None
    host: bytes | None
    sandbox: bytes | None
    #: with conflict markers, or NULL
    merged: bytes | None


def conflict(p: Any) -> Conflict:
    return Conflict(
        _str(p.path),
        _str(p.why),
        _some(p.base, p.base_len),
        _some(p.host, p.host_len),
        _some(p.sandbox, p.sandbox_len),
        _some(p.merged, p.merged_len),
    )


def conflicts(p: Any, count: int) -> list[Conflict]:
    return [conflict(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class CommitResult:
    """The C struct is csn_commit_result."""

    #: 0: dry run, or conflicts: nothing was written
    written: bool
    changes: list[Change]
    #: numbers of these outcomes
    applied: int
    #: numbers of these outcomes
    merged: int
    #: numbers of these outcomes
    held: int
    conflicts: list[Conflict]


def commit(p: Any) -> CommitResult:
    return CommitResult(
        p.written != 0,
        changes(p.changes, p.count),
        p.applied,
        p.merged,
        p.held,
        conflicts(p.conflicts, p.conflict_count),
    )


def commits(p: Any, count: int) -> list[CommitResult]:
    return [commit(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class AuditReport:
    """The C struct is csn_audit_report."""

    ok: bool
    #: number of lines checked
    lines: int
    #: 1-based; 0: none
    bad_line: int
    #: NULL when ok
    reason: str | None
    #: operations that began and have no recorded result; 0 when ok
    gaps: int


def audit_report(p: Any) -> AuditReport:
    return AuditReport(
        p.ok != 0,
        p.lines,
        p.bad_line,
        text(q) if (q := p.reason) else None,
        p.gaps,
    )


def audit_reports(p: Any, count: int) -> list[AuditReport]:
    return [audit_report(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class AuditLog:
    """The C struct is csn_audit_log."""

    #: of the sandbox
    id: str
    #: on disk
    bytes: int
    #: time of the last line
    written_ms: int
    #: a process has the sandbox open
    in_use: bool


def audit_log(p: Any) -> AuditLog:
    return AuditLog(
        _str(p.id),
        p.bytes,
        p.written_ms,
        p.in_use != 0,
    )


def audit_logs(p: Any, count: int) -> list[AuditLog]:
    return [audit_log(one) for one in _unpack(p, count)] if count else []


@dataclass(slots=True)
class AsideEntry:
    """The C struct is csn_aside_entry."""

    #: SANDBOX/NUMBER
    id: str
    #: id of the sandbox that made or changed it
    sandbox: str
    #: where it was; NULL: not known
    path: str | None
    #: why it was moved; NULL: not known
    reason: str | None
    #: where it is now
    kept: str
    #: "file", "directory", "symlink" or "other"
    type: str
    bytes: int
    moved_ms: int


def aside_entry(p: Any) -> AsideEntry:
    return AsideEntry(
        _str(p.id),
        _str(p.sandbox),
        text(q) if (q := p.path) else None,
        text(q) if (q := p.reason) else None,
        _str(p.kept),
        _str(p.type),
        p.bytes,
        p.moved_ms,
    )


def aside_entries(p: Any, count: int) -> list[AsideEntry]:
    return [aside_entry(one) for one in _unpack(p, count)] if count else []


__all__ = ["Denial", "Layer", "RuleInfo", "Info", "SandboxEntry", "ExecResult", "ProcessInfo",
           "LogChunk", "FileInfo", "FileList", "ReadResult", "WriteResult", "EditResult",
           "GrepMatch", "GrepResult", "Event", "NetEvent", "NetResult", "Verdict", "Check",
           "DoctorResult", "SnapshotResult", "SnapshotEntry", "Change", "DiffResult",
           "Conflict", "CommitResult", "AuditReport", "AuditLog", "AsideEntry"]
