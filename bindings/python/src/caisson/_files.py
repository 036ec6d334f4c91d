"""_files.py: files, search, events and transfers."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict, Union

from . import _callbacks as callbacks
from ._callbacks import Sink, Source
from ._constants import (FILE_APPEND, FILE_CREATE, FILE_HASH, FILE_NO_PARENTS, FILE_NOFOLLOW,
                         FILE_GITIGNORE, FILE_NUMBERS, FILE_RECURSIVE, FILE_SYNC, FILE_TEXT,
                         GREP_GITIGNORE, GREP_IGNORE_CASE,
                         GREP_REGEX, LINES_DEFAULT, TRANSFER_PROTECTED)
from ._encode import Data, Keeper, Path, data, fsname, nbytes, optional
from ._errors import take
from ._handle import Cancel, Handle
from ._library import ffi, lib
from ._process import Watch
from ._results import (EditResult, FileInfo, FileList, GrepResult, ReadResult, WriteResult, edit,
                       file_info, file_list, grep, read, write)

_READ_OPTS, _READ = ffi.typeof("csn_read_opts *"), ffi.typeof("csn_read_result **")
_READ_SIZE = ffi.sizeof("csn_read_opts")
_WRITE_OPTS, _WRITTEN = ffi.typeof("csn_write_opts *"), ffi.typeof("csn_write_result **")
_WRITE_SIZE = ffi.sizeof("csn_write_opts")
_LIST, _ERR = ffi.typeof("csn_file_list **"), ffi.typeof("csn_error **")


class Edit(TypedDict, total=False):
    """One replacement of Sandbox.edit. old_string and new_string are needed; old_string must
    occur once, unless replace_all."""

    old_string: Data
    new_string: Data
    replace_all: bool


class FileContent(TypedDict, total=False):
    """One file of Sandbox.write_many. data is needed."""

    data: Data
    mode: int
    if_hash: str


FilesToWrite = Mapping[Any, Union[Data, FileContent]]


def _file_flags(nofollow: bool = False, create: bool = False, append: bool = False,
                sync: bool = False, no_parents: bool = False) -> int:
    return (FILE_NOFOLLOW * nofollow | FILE_CREATE * create | FILE_APPEND * append
            | FILE_SYNC * sync | FILE_NO_PARENTS * no_parents)


def _write_opts(flags: int, if_hash: str | None, mode: int, keeper: Keeper) -> Any:
    if not flags and if_hash is None and not mode:
        return ffi.NULL
    opts = ffi.new(_WRITE_OPTS)
    opts.size, opts.flags, opts.mode = _WRITE_SIZE, flags, mode
    if if_hash is not None:
        opts.if_hash = keeper.string(if_hash)
    return opts


def _read_opts(flags: int, offset: int, limit: int, byte_max: int,
               cancel: Cancel | None) -> Any:
    opts = ffi.new(_READ_OPTS)
    opts.size, opts.flags, opts.offset, opts.limit = _READ_SIZE, flags, offset, limit
    opts.byte_max = byte_max
    if cancel is not None:
        opts.cancel = cancel._pointer
    return opts


class Files:
    """The part of Sandbox that reads and writes files. Paths are relative to the working
    directory; `~` is the home; a leading `/` is the sandbox's root."""

    _handle: Handle

    def _with_source(self, source: Source,
                     call: Callable[[Any, Any, Any, Any], int]) -> None:
        """call(pointer, read function, context, err); raises what the source raised."""
        feed, err = callbacks.source(source), ffi.new(_ERR)
        pointer = self._handle.enter()
        try:
            status = call(pointer, callbacks.read_fn(), feed.context, err)
        finally:
            self._handle.leave()
        self._finish(status, err, feed)

    def _finish(self, status: int, err: Any, *calls: callbacks.Call) -> None:
        error = take(status, err) if status < 0 else None
        for call in calls:
            call.check()
        if error is not None:
            raise error

    # ---- content ----

    def read(self, path: Path, *, offset: int = 0, limit: int | None = None,
             byte_max: int = 0, numbers: bool = False, text: bool = False, hash: bool = False,
             nofollow: bool = False, cancel: Cancel | None = None) -> ReadResult:
        """Reads lines `offset` (0-based) and following, at most `limit` (default 2000; 0 asks only
        for the counts) and byte_max bytes (default 256 KiB). An image is returned whole in
        content_bytes, with its mime_type, unless `text`. numbers puts the number before each
        line; hash fills in the SHA-256 of the file."""
        flags = (FILE_NUMBERS * numbers | FILE_TEXT * text | FILE_HASH * hash
                 | FILE_NOFOLLOW * nofollow)
        opts = _read_opts(flags, offset, LINES_DEFAULT if limit is None else limit, byte_max,
                          cancel)
        found = self._handle.ask(_READ, lib.csn_read, fsname(path), opts)
        try:
            return read(found)
        finally:
            lib.csn_read_result_free(found)

    def read_bytes(self, path: Path, *, offset: int = 0, limit: int = 0, nofollow: bool = False,
                   cancel: Cancel | None = None) -> bytes:
        """The bytes of a file from byte `offset`, at most `limit` (0: to the end)."""
        pieces: list[bytes] = []
        self.read_into(path, pieces.append, offset=offset, limit=limit, nofollow=nofollow,
                       cancel=cancel)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def read_into(self, path: Path, sink: Sink, *, offset: int = 0, limit: int = 0,
                  nofollow: bool = False, cancel: Cancel | None = None) -> None:
        """As read_bytes; the bytes go to a binary file or a function, piece by piece."""
        opts = _read_opts(FILE_NOFOLLOW * nofollow, offset, limit, 0, cancel)
        target, err = callbacks.sink(sink), ffi.new(_ERR)
        pointer = self._handle.enter()
        try:
            status = lib.csn_read_bytes(pointer, fsname(path), opts, callbacks.write_fn(),
                                        target.context, err)
        finally:
            self._handle.leave()
        self._finish(status, err, target)

    def write(self, path: Path, content: Data, *, create: bool = False, append: bool = False,
              sync: bool = False, no_parents: bool = False, nofollow: bool = False,
              if_hash: str | None = None, mode: int = 0) -> WriteResult:
        """Writes a whole file atomically; missing directories are created unless no_parents.
        create: Exists if the file exists. if_hash: `conflict` if the file has another SHA-256.
        mode is that of a new file."""
        keeper = Keeper()
        opts = _write_opts(_file_flags(nofollow, create, append, sync, no_parents), if_hash, mode,
                           keeper)
        encoded = data(content)
        found = self._handle.ask(_WRITTEN, lib.csn_write, fsname(path), ffi.from_buffer(encoded),
                                 nbytes(encoded), opts)
        try:
            return write(found)
        finally:
            lib.csn_write_result_free(found)

    def write_from(self, path: Path, source: Source, *, create: bool = False,
                   append: bool = False, sync: bool = False, no_parents: bool = False,
                   nofollow: bool = False, if_hash: str | None = None,
                   mode: int = 0) -> WriteResult:
        """As write; the content comes from a binary file or an iterable of bytes."""
        keeper, ret = Keeper(), ffi.new(_WRITTEN)
        opts = _write_opts(_file_flags(nofollow, create, append, sync, no_parents), if_hash, mode,
                           keeper)
        target = fsname(path)
        self._with_source(source, lambda sb, fn, ctx, err: int(
            lib.csn_write_from(sb, target, fn, ctx, opts, ret, err)))
        try:
            return write(ret[0])
        finally:
            lib.csn_write_result_free(ret[0])

    def write_many(self, files: FilesToWrite, *, create: bool = False, sync: bool = False,
                   no_parents: bool = False, nofollow: bool = False) -> None:
        """Writes all files or none. The keys are paths; a value is the content, or a FileContent
        with a mode or if_hash."""
        keeper = Keeper()
        rows = ffi.new("csn_file_content[]", len(files))
        for row, (name, value) in zip(rows, files.items()):
            given: Any = value if isinstance(value, Mapping) else {"data": value}
            content = data(given["data"])
            row.path, row.data = keeper.string(name), keeper.content(content)
            row.len, row.mode = nbytes(content), given.get("mode", 0)
            if given.get("if_hash") is not None:
                row.if_hash = keeper.string(given["if_hash"])
        self._handle.call(lib.csn_write_many, rows, len(files),
                          _file_flags(nofollow, create, False, sync, no_parents))

    def write_tar(self, source: Source, path: Path | None = None, *, create: bool = False,
                  sync: bool = False, no_parents: bool = False, nofollow: bool = False) -> None:
        """Writes the files of a tar stream below a directory, all or none."""
        flags = _file_flags(nofollow, create, False, sync, no_parents)
        target = optional(path)
        self._with_source(source, lambda sb, fn, ctx, err: int(
            lib.csn_write_tar(sb, target, fn, ctx, flags, err)))

    def edit(self, path: Path, edits: Sequence[Edit], *, nofollow: bool = False) -> EditResult:
        """Applies the edits in order, all or none: [{"old_string": ..., "new_string": ...,
        "replace_all": False}]. `no_match` or `ambiguous` if a string does not occur once."""
        keeper = Keeper()
        rows = ffi.new("csn_edit_item[]", len(edits))
        for row, one in zip(rows, edits):
            before, after = bytes(data(one["old_string"])), bytes(data(one["new_string"]))
            # A length of 0 means strlen, so both are NUL-terminated copies.
            row.old_string, row.old_len = keeper.blob(before), len(before)
            row.new_string, row.new_len = keeper.blob(after), len(after)
            row.replace_all = bool(one.get("replace_all", False))
        found = self._handle.ask(ffi.typeof("csn_edit_result **"), lib.csn_edit, fsname(path), rows,
                                 len(edits), FILE_NOFOLLOW * nofollow)
        try:
            return edit(found)
        finally:
            lib.csn_edit_result_free(found)

    # ---- names ----

    def delete(self, path: Path, *, recursive: bool = False, nofollow: bool = False) -> None:
        """Deletes a file, or with recursive a directory and all that is below it."""
        self._handle.call(lib.csn_delete, fsname(path),
                          FILE_RECURSIVE * recursive | FILE_NOFOLLOW * nofollow)

    def mkdir(self, path: Path, *, no_parents: bool = False, nofollow: bool = False) -> None:
        """Makes a directory, and the missing ones above it unless no_parents."""
        self._handle.call(lib.csn_mkdir, fsname(path), _file_flags(nofollow, no_parents=no_parents))

    def rename(self, from_: Path, to: Path, *, nofollow: bool = False) -> None:
        """Renames a file or directory."""
        self._handle.call(lib.csn_rename, fsname(from_), fsname(to), FILE_NOFOLLOW * nofollow)

    def stat(self, path: Path, *, nofollow: bool = False) -> FileInfo:
        """What a path is. Follows symlinks unless nofollow."""
        found = self._handle.ask(_LIST, lib.csn_stat, fsname(path), FILE_NOFOLLOW * nofollow)
        try:
            return file_info(found.items[0])
        finally:
            lib.csn_file_list_free(found)

    def list(self, path: Path = ".", *, nofollow: bool = False) -> FileList:
        """The entries of a directory, sorted by name."""
        return _files(self._handle.ask(_LIST, lib.csn_list, fsname(path),
                                       FILE_NOFOLLOW * nofollow))

    def glob(self, pattern: Path, path: Path | None = None, *,
             nofollow: bool = False, gitignore: bool = False) -> FileList:
        """The files below a directory whose path matches: ** * ? [..] {a,b}, also dotfiles. Paths
        are sorted and relative to the directory. gitignore leaves out what .gitignore files name."""
        return _files(self._handle.ask(_LIST, lib.csn_glob, fsname(pattern), optional(path),
                                       FILE_NOFOLLOW * nofollow | FILE_GITIGNORE * gitignore))

    def grep(self, pattern: Path, path: Path | None = None, *, glob: Path | None = None,
             regex: bool = False, ignore_case: bool = False, gitignore: bool = False,
             context: int = 0, max: int = 0, cancel: Cancel | None = None) -> GrepResult:
        """The lines that contain the pattern, which is literal unless regex; sorted by path and
        line. Binary files are skipped. gitignore leaves out what .gitignore files name."""
        keeper, opts = Keeper(), ffi.new("csn_grep_opts *")
        opts.size = ffi.sizeof("csn_grep_opts")
        opts.flags = (GREP_REGEX * regex | GREP_IGNORE_CASE * ignore_case |
                      GREP_GITIGNORE * gitignore)
        opts.context, opts.max = context, max
        if path is not None:
            opts.path = keeper.string(path)
        if glob is not None:
            opts.glob = keeper.string(glob)
        if cancel is not None:
            opts.cancel = cancel._pointer
        found = self._handle.ask(ffi.typeof("csn_grep_result **"), lib.csn_grep, fsname(pattern),
                                 opts)
        try:
            return grep(found)
        finally:
            lib.csn_grep_result_free(found)

    def watch(self, path: Path = ".", *, recursive: bool = False) -> Watch:
        """Watches a directory; with recursive all below it, too."""
        pointer = self._handle.ask(ffi.typeof("csn_watch **"), lib.csn_watch_open, fsname(path),
                                   FILE_RECURSIVE * recursive)
        return Watch(pointer, self)

    # ---- transfer ----

    def _transfer(self, function: Any, arguments: Iterable[Any], flags: int, max_bytes: int,
                  max_entries: int, on_progress: OnProgress | None,
                  on_protected: OnProtected | None, cancel: Cancel | None,
                  *calls: callbacks.Call) -> None:
        opts, told = ffi.new("csn_transfer_opts *"), [*calls]
        opts.size, opts.flags = ffi.sizeof("csn_transfer_opts"), flags
        opts.max_bytes, opts.max_entries = max_bytes, max_entries
        if on_progress is not None:
            told.append(callbacks.Call(on_progress))
            opts.on_progress, opts.on_progress_ctx = callbacks.progress_fn(), told[-1].context
        if on_protected is not None:
            told.append(callbacks.protected(on_protected))
            opts.on_protected, opts.on_protected_ctx = callbacks.protected_fn(), told[-1].context
        if cancel is not None:
            opts.cancel = cancel._pointer
        err = ffi.new(_ERR)
        pointer = self._handle.enter()
        try:
            status = function(pointer, *arguments, opts, err)
        finally:
            self._handle.leave()
        self._finish(status, err, *told)

    def export(self, path: Path, host_dir: Path, *, protected: bool = False, max_bytes: int = 0,
               max_entries: int = 0, on_progress: OnProgress | None = None,
               on_protected: OnProtected | None = None, cancel: Cancel | None = None) -> None:
        """Copies a directory of the sandbox to a directory of the host, which is created if
        missing. Files that programs of the host would run, such as git hooks, are left out unless
        `protected`; on_protected(path, rule) is called for each."""
        self._transfer(lib.csn_export, (fsname(path), fsname(host_dir)),
                       TRANSFER_PROTECTED * protected, max_bytes, max_entries, on_progress,
                       on_protected, cancel)

    def import_(self, host_dir: Path, path: Path = ".", *, max_bytes: int = 0,
                max_entries: int = 0, on_progress: OnProgress | None = None,
                cancel: Cancel | None = None) -> None:
        """Copies a directory of the host into the sandbox."""
        self._transfer(lib.csn_import, (fsname(host_dir), fsname(path)), 0,
                       max_bytes, max_entries, on_progress, None, cancel)

    def export_tar(self, path: Path, sink: Sink, *, max_bytes: int = 0, max_entries: int = 0,
                   on_progress: OnProgress | None = None,
                   on_protected: OnProtected | None = None,
                   cancel: Cancel | None = None) -> None:
        """Writes a directory as a tar stream to a binary file or a function. It contains files
        that programs of the host would run; on_protected(path, rule) is called for each."""
        target = callbacks.sink(sink)
        self._transfer(lib.csn_export_tar, (fsname(path), callbacks.write_fn(), target.context), 0,
                       max_bytes, max_entries, on_progress, on_protected, cancel, target)

    def import_tar(self, path: Path, source: Source, *, max_bytes: int = 0, max_entries: int = 0,
                   on_progress: OnProgress | None = None, cancel: Cancel | None = None) -> None:
        """Unpacks a tar stream, from a binary file or an iterable of bytes, into a directory."""
        feed = callbacks.source(source)
        self._transfer(lib.csn_import_tar, (fsname(path), callbacks.read_fn(), feed.context), 0,
                       max_bytes, max_entries, on_progress, None, cancel, feed)


OnProgress = Callable[[int, int], object]
OnProtected = Callable[[str, str], object]


def _files(found: Any) -> FileList:
    try:
        return file_list(found)
    finally:
        lib.csn_file_list_free(found)
