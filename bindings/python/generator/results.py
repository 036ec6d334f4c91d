"""results.py: the result types and their converters (_results.py), from the model's structs."""
import textwrap

# Structs that are results, in the order of their use, with their names in Python.
RESULTS = {
    "csn_denial": "Denial", "csn_layer": "Layer", "csn_rule_info": "RuleInfo",
    "csn_info_result": "Info", "csn_sandbox_entry": "SandboxEntry",
    "csn_exec_result": "ExecResult", "csn_process_info": "ProcessInfo",
    "csn_log_chunk": "LogChunk", "csn_file_info": "FileInfo", "csn_file_list": "FileList",
    "csn_read_result": "ReadResult", "csn_write_result": "WriteResult",
    "csn_edit_result": "EditResult", "csn_grep_match": "GrepMatch",
    "csn_grep_result": "GrepResult", "csn_event": "Event", "csn_net_event": "NetEvent",
    "csn_net_result": "NetResult", "csn_verdict": "Verdict", "csn_check": "Check",
    "csn_doctor_result": "DoctorResult", "csn_snapshot_result": "SnapshotResult",
    "csn_snapshot_entry": "SnapshotEntry", "csn_change": "Change",
    "csn_diff_result": "DiffResult", "csn_conflict": "Conflict",
    "csn_commit_result": "CommitResult", "csn_audit_report": "AuditReport",
    "csn_audit_log": "AuditLog", "csn_aside_entry": "AsideEntry",
}
# Structs of the model that are not results.
OTHERS = {
    "csn_rule": "an option", "csn_config": "options, as JSON", "csn_exec_opts": "an option",
    "csn_output": "part of ExecResult", "csn_process_list": "a list",
    "csn_sandbox_list": "a list", "csn_read_opts": "options", "csn_write_opts": "options",
    "csn_file_content": "an argument", "csn_edit_item": "an argument",
    "csn_grep_opts": "options", "csn_net_opts": "options", "csn_transfer_opts": "options",
    "csn_snapshot_list": "a list", "csn_diff_opts": "options", "csn_resolution": "an argument",
    "csn_commit_opts": "options", "csn_audit_logs_result": "a list",
    "csn_aside_list_result": "a list",
}
# Text that may be any byte: the bytes are kept, and decoded when asked for as text.
TEXTS = {("csn_read_result", "content"), ("csn_grep_match", "text")}
# Pointers that may be NULL although their own comment does not say so.
OPTIONAL = {("csn_denial", f) for f in ("target", "resolved", "rule", "source", "hint")} | {
    ("csn_net_event", f) for f in ("protocol", "address", "rule", "hint", "why")} | {
    ("csn_info_result", f) for f in ("workdir", "home")} | {
    ("csn_sandbox_entry", "workspace"), ("csn_net_result", "detail"),
    ("csn_conflict", "base"), ("csn_conflict", "host"), ("csn_conflict", "sandbox"),
    ("csn_snapshot_entry", "how"), ("csn_write_result", "resolved_path"),
    ("csn_edit_result", "resolved_path"), ("csn_edit_result", "hash"),
    ("csn_net_result", "network"), ("csn_write_result", "note")}
STREAMS = {"out": "stdout", "err": "stderr", "merged": "output"}
NUMBERS = {"u32": "int", "i32": "int", "u64": "int", "i64": "int", "u16": "int", "f64": "float",
           "bool": "bool"}

HEAD = '''"""Results of the library, and what makes them of C structs. Generated: do not edit."""
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

'''


def words(model):
    """name -> {value: word} of each enum; the word for `none` is None."""
    found = {}
    for name, enum in model["enums"].items():
        found[name] = {v["value"]: v["name"].split("_", 2)[2].lower() for v in enum["values"]}
    return found


def is_optional(struct, field):
    return "NULL" in field["doc"] and "never NULL" not in field["doc"] or \
        (struct, field["name"]) in OPTIONAL


def columns(struct, f):
    """(name, type, expression, doc) of each Python field for one field of the struct."""
    name, kind, key = f["name"], f["kind"], (struct["name"], f["name"])
    at = f"p.{name}"
    if kind == "str":
        optional = is_optional(struct["name"], f)
        return [(name, "str | None" if optional else "str",
                 f"text(q) if (q := {at}) else None" if optional else f"_str({at})", f["doc"])]
    if kind == "chars":
        return [(name, "str", f"_str({at})", f["doc"])]
    if kind == "bytes":
        size = f"p.{f['len']}"
        if key in TEXTS:
            return [(f"{name}_bytes", "bytes", f"_raw({at}, {size})", f["doc"])]
        optional = is_optional(struct["name"], f)
        return [(name, "bytes | None" if optional else "bytes",
                 f"{'_some' if optional else '_raw'}({at}, {size})", f["doc"])]
    if kind == "strv":
        return [(name, "list[str]", f"strings({at})", f["doc"])]
    if kind == "bool":
        return [(name, "bool", f"{at} != 0", f["doc"])]
    if kind == "enum":
        return [(name, "str | None", f"{f['of'].upper()}.get({at})", f["doc"])]
    if key == ("csn_event", "kind"):
        return [(name, "str", f"EVENT_KINDS.get({at}, 'unknown')",
                 "create, modify, delete, rename (path is the new name), or overflow (events "
                 "were lost: list the directory again)")]
    if kind == "list" and key != ("csn_exec_result", "layers"):
        of = RESULTS[f["of"]]
        return [(name, f"list[{of}]", f"{plural(f['of'])}({at}, p.{f['count']})", f["doc"])]
    if kind == "list":
        return [("_layers", "Any", "_later(p)", "")]
    if kind == "struct" and f["of"] == "csn_output":
        stream = STREAMS[name]
        at = name
        return [(f"{stream}_bytes", "bytes", f"_raw({at}.data, {at}.len)",
                 "the kept part, as bytes"),
                (f"{stream}_total", "int", f"{at}.total", "bytes written, kept or not"),
                (f"{stream}_head", "int", f"{at}.head",
                 "so many of the kept bytes are the start of the output, the rest its end")]
    if kind == "struct":
        return [(name, RESULTS[f["of"]], f"{converter(f['of'])}({at})", f["doc"])]
    if name == "exit_code":
        return [(name, "int | None", f"None if {at} < 0 else {at}",
                 f["doc"].replace("-1", "None"))]
    return [(name, NUMBERS[kind], at, f["doc"])]


def converter(struct):
    return struct.removeprefix("csn_").removesuffix("_result") if struct != "csn_info_result" \
        else "info"


def plural(struct):
    name = converter(struct)
    return name[:-1] + "ies" if name.endswith("y") else name + "s"


def text_property(name, of):
    return [f"    @property",
            f"    def {name}(self) -> str:",
            f'        """{of} as text: UTF-8, invalid bytes replaced."""',
            f'        return self.{of}.decode("utf-8", "replace")', ""]


def extras(struct):
    """Further members of the class, as lines."""
    name, lines = struct["name"], []
    if name == "csn_exec_result":
        for stream in ("stdout", "stderr", "output"):
            lines += text_property(stream, f"{stream}_bytes")
        lines += [
            "    @property", "    def layers(self) -> list[Layer]:",
            '        """What was enforced."""',
            "        if not isinstance(self._layers, list):",
            "            self._layers = layers(self._layers.layers, self._layers.layer_count)",
            "        found: list[Layer] = self._layers", "        return found", "",
            "    def __reduce__(self) -> tuple[Any, ...]:",
            "        self.layers",
            "        return type(self), tuple(getattr(self, n) for n in self.__slots__)", ""]
    if name == "csn_log_chunk":
        lines += text_property("text", "data")
    for struct_name, field in sorted(TEXTS):
        if struct_name == name:
            lines += text_property(field, f"{field}_bytes")
    if any(f["name"] == "items" for f in struct["fields"]):
        of = RESULTS[next(f for f in struct["fields"] if f["name"] == "items")["of"]]
        lines += [f"    def __iter__(self) -> Iterator[{of}]:", "        return iter(self.items)",
                  "", "    def __len__(self) -> int:", "        return len(self.items)", "",
                  f"    def __getitem__(self, index: int) -> {of}:",
                  "        return self.items[index]", "",
                  "    def __bool__(self) -> bool:", "        return True", ""]
    return lines


def comment(doc):
    return [f"    #: {line}" for line in textwrap.wrap(doc, 88)]


def class_lines(struct, rows):
    title = RESULTS[struct["name"]]
    doc = struct["doc"] or f"The C struct is {struct['name']}."
    lines = ["@dataclass(slots=True)", f"class {title}:"]
    lines += textwrap.wrap(f'"""{doc}"""', 92, initial_indent="    ", subsequent_indent="    ")
    lines.append("")
    for name, kind, _, note in rows:
        default = " = field(repr=False, compare=False)" if name == "_layers" else ""
        lines += comment(note) + [f"    {name}: {kind}{default}"]
    if struct["name"] == "csn_process_info":
        lines += comment("set by Process.wait: protected files moved to the quarantine")
        lines += ["    denials: list[Denial] = field(default_factory=list)"]
    lines.append("")
    lines += extras(struct)
    return lines


def function_lines(struct, rows):
    title, name = RESULTS[struct["name"]], converter(struct["name"])
    lines = ["", f"def {name}(p: Any) -> {title}:"]
    if struct["name"] == "csn_exec_result":  # each access to a struct in a struct makes an object
        lines += [f"    {stream} = p.{stream}" for stream in STREAMS]
    lines += [f"    return {title}("]
    lines += [f"        {expression}," for _, _, expression, _ in rows] + ["    )", ""]
    lines += ["", f"def {plural(struct['name'])}(p: Any, count: int) -> list[{title}]:",
              f"    return [{name}(one) for one in _unpack(p, count)] if count else []", ""]
    return lines


LATER = '''
_LATER_MAX = 1 << 16


def _later(p: Any) -> Any:
    """The layers of a result: converted when asked for, as they are many and seldom used. A
    result with much output is not kept in memory for them."""
    if p.out.len + p.err.len + p.merged.len > _LATER_MAX:
        return layers(p.layers, p.layer_count)
    return p

'''


def order(structs):
    """Structs before those that contain them: the classes are then readable from the top."""
    return [structs[name] for name in RESULTS]


def module(model):
    structs = model["structs"]
    unknown = set(structs) - set(RESULTS) - set(OTHERS)
    if unknown:
        raise SystemExit(f"generate: results.py does not know {', '.join(sorted(unknown))}")
    lines = [HEAD]
    for name, table in words(model).items():
        table = {k: None if v == "none" else v for k, v in table.items()}
        lines.append(f"{name.upper()}: dict[int, str | None] = {table!r}")
    events = {e["value"]: e["name"].split("_")[-1].lower() for e in model["events"]}
    lines += [f"EVENT_KINDS: dict[int, str] = {events!r}", LATER]
    for struct in order(structs):
        rows = [row for f in struct["fields"] for row in columns(struct, f)]
        lines += ["", *class_lines(struct, rows), *function_lines(struct, rows)]
    names = ", ".join(f'"{n}"' for n in RESULTS.values())
    lines += ["", *textwrap.wrap(f"__all__ = [{names}]", 96, subsequent_indent="           ")]
    return squeeze("\n".join(lines)) + "\n"


def squeeze(text):
    """At most two empty lines in a row, none at the end."""
    while "\n\n\n\n" in text:
        text = text.replace("\n\n\n\n", "\n\n\n")
    return text.rstrip("\n")
