"""_encode.py: arguments as C wants them."""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Union

from ._library import ffi

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Data = Union[str, bytes, bytearray, memoryview]

_STRINGS = ffi.typeof("char *[]")
_BYTES = ffi.typeof("char[]")


def fsname(value: Path) -> bytes:
    """A path or another text that C reads up to its NUL, encoded as os.fsencode does."""
    encoded = value.encode() if type(value) is str and value.isascii() else os.fsencode(value)
    if b"\0" in encoded:
        raise ValueError("embedded null byte")
    return encoded


def optional(value: Path | None) -> Any:
    return ffi.NULL if value is None else fsname(value)


def data(value: Data) -> bytes | bytearray | memoryview:
    """Content: text becomes UTF-8."""
    return value.encode() if isinstance(value, str) else value


def nbytes(value: bytes | bytearray | memoryview) -> int:
    return value.nbytes if isinstance(value, memoryview) else len(value)


class Keeper(list[Any]):
    """Owns what a C struct points to, for the time of a call."""

    __slots__ = ()

    def string(self, value: Path) -> Any:
        return self.blob(fsname(value))

    def strings(self, values: Iterable[Path]) -> Any:
        """A NULL-terminated list."""
        if isinstance(values, (str, bytes)):
            raise TypeError("a list of strings is needed, not one string")
        words: list[Any] = [ffi.new(_BYTES, fsname(value)) for value in values]
        words.append(ffi.NULL)
        self.append(words)
        self.append(made := ffi.new(_STRINGS, words))
        return made

    def variables(self, env: Mapping[str, str]) -> Any:
        return self.strings(b"=".join((fsname(k), fsname(v))) for k, v in env.items())

    def blob(self, value: bytes) -> Any:
        """A NUL-terminated copy of bytes that may contain NUL."""
        made = ffi.new(_BYTES, value)
        self.append(made)
        return made

    def content(self, value: Data) -> Any:
        """A pointer to content, which is not copied."""
        made = ffi.from_buffer(data(value))
        self.append(made)
        return made
