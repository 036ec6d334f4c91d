"""_workspace.py: snapshots, forks, changes and commits."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ._constants import (COMMIT_DRY_RUN, COMMIT_MINE, COMMIT_PROTECTED, COMMIT_THEIRS, DIFF_COUNTS,
                         DIFF_HASHES, DIFF_PATCH)
from ._encode import Data, Keeper, Path, data, nbytes, optional
from ._handle import Handle
from ._library import ffi, lib
from ._results import (CommitResult, DiffResult, SnapshotEntry, SnapshotResult, commit, diff,
                       snapshot, snapshot_entries)

_SNAPSHOT = ffi.typeof("csn_snapshot_result **")


class Workspace:
    """The part of Sandbox that compares, keeps, throws away and forks workspaces."""

    _handle: Handle

    def snapshot(self) -> SnapshotResult:
        """Saves the present files."""
        return _snapshot(self._handle.ask(_SNAPSHOT, lib.csn_snapshot))

    def snapshot_as(self, name: str | None = None) -> SnapshotResult:
        """Saves the present files under a name (None: one is made up); Exists if it is taken."""
        return _snapshot(self._handle.ask(_SNAPSHOT, lib.csn_snapshot_as, optional(name)))

    def snapshots(self) -> list[SnapshotEntry]:
        """The snapshots, the oldest first."""
        found = self._handle.ask(ffi.typeof("csn_snapshot_list **"), lib.csn_snapshots)
        try:
            return snapshot_entries(found.items, found.count)
        finally:
            lib.csn_snapshot_list_free(found)

    def rollback(self, snapshot: str | None = None) -> None:
        """Replaces the files with those of a snapshot (None: the newest, or the host's files if
        there is none). `conflict` while a command or background process runs."""
        self._handle.call(lib.csn_rollback, optional(snapshot))

    def undo(self) -> None:
        """Goes back to the snapshot before the last command (option `undo`), and removes it."""
        self._handle.call(lib.csn_undo)

    def discard(self) -> None:
        """Throws all changes and snapshots away: the workspace is the host's directory again."""
        self._handle.call(lib.csn_discard)

    def diff(self, paths: Iterable[Path] | None = None, *, patch: bool = False,
             counts: bool = False, hashes: bool = False) -> DiffResult:
        """Compares the workspace with the host's directory. patch: also a patch that `git apply`
        takes; counts: added and removed lines; hashes: SHA-256 before and after."""
        keeper, opts = Keeper(), ffi.new("csn_diff_opts *")
        opts.size = ffi.sizeof("csn_diff_opts")
        opts.flags = DIFF_PATCH * patch | DIFF_COUNTS * counts | DIFF_HASHES * hashes
        if paths is not None:
            opts.paths = keeper.strings(paths)
        found = self._handle.ask(ffi.typeof("csn_diff_result **"), lib.csn_diff, opts)
        try:
            return diff(found)
        finally:
            lib.csn_diff_result_free(found)

    def commit(self, paths: Iterable[Path] | None = None, *, dry_run: bool = False,
               protected: bool = False, mine: bool = False, theirs: bool = False,
               resolved: Mapping[str, Data] | None = None) -> CommitResult:
        """Writes changes to the host's directory, all or, if there are conflicts, none: check
        `written`. A conflict is decided by mine (keep the host's file), theirs (take the
        sandbox's) or the content in `resolved`. protected: also files that programs of the host
        would run."""
        keeper, opts = Keeper(), ffi.new("csn_commit_opts *")
        opts.size = ffi.sizeof("csn_commit_opts")
        opts.flags = (COMMIT_DRY_RUN * dry_run | COMMIT_PROTECTED * protected | COMMIT_MINE * mine
                      | COMMIT_THEIRS * theirs)
        if paths is not None:
            opts.paths = keeper.strings(paths)
        if resolved:
            rows = ffi.new("csn_resolution[]", len(resolved))
            keeper.append(rows)
            for row, (name, value) in zip(rows, resolved.items()):
                content = data(value)
                row.path, row.data = keeper.string(name), keeper.content(content)
                row.size = nbytes(content)
            opts.resolved, opts.resolved_count = rows, len(resolved)
        found = self._handle.ask(ffi.typeof("csn_commit_result **"), lib.csn_commit, opts)
        try:
            return commit(found)
        finally:
            lib.csn_commit_result_free(found)


def _snapshot(found: Any) -> SnapshotResult:
    try:
        return snapshot(found)
    finally:
        lib.csn_snapshot_result_free(found)
