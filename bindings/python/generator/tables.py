"""tables.py: error codes, flags (_constants.py) and options of a sandbox (_options.py)."""
import textwrap

CODES_HEAD = '''"""Status words and flags of the library. Generated: do not edit."""
from __future__ import annotations

from typing import Literal

'''


def constants(model):
    lines = [CODES_HEAD]
    lines.append("#: The word of each status, as `code` of an Error.")
    words = [s["word"] for s in model["statuses"] if s["value"] != 0]
    text = "Code = Literal[" + ", ".join(f'"{w}"' for w in words) + "]"
    lines += textwrap.wrap(text, 92, subsequent_indent="               ")
    lines += ["", "CODES: dict[int, Code] = {"]
    lines += [f'    {s["value"]}: "{s["word"]}",  # {s["text"]}'
              for s in model["statuses"] if s["value"] != 0]
    lines += ["}", 'STATUSES: dict[str, int] = {word: value for value, word in CODES.items()}', ""]
    for flag in model["flags"]:
        note = f"  # {flag['doc']}" if flag["doc"] else ""
        line = f"{flag['name'].removeprefix('CSN_')} = {flag['value']}"
        lines.append(line + note if len(line + note) <= 96 else line)
    for one in model["constants"]:
        lines.append(f"{one['name'].removeprefix('CSN_')} = {one['value']}")
    lines += ["", "#: For times and sizes: unlimited.", "NO_LIMIT = 2**64 - 1",
              "LINES_DEFAULT = 2**64 - 2"]
    return "\n".join(lines) + "\n"


OPTIONS_HEAD = '''"""Options of a sandbox: the keys of `caisson policy schema`. Generated: do not edit."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Union

Path = Union[str, "os.PathLike[str]"]
Paths = Union[Path, Sequence[Path]]
Words = Union[str, Sequence[str]]

'''
PATHS = {"workspace", "workdir", "home", "audit"}
PATH_LISTS = {"read", "write", "workspaces", "deny", "deny_missing_ok"}
TYPES = {"str": "str", "bool": "bool", "strv": "Words", "env": "Union[Words, Mapping[str, str]]",
         "rules": "Sequence[Mapping[str, Any]]", "number": "Union[int, str]"}


def option_type(option):
    if option["kind"] == "choice":
        return "Literal[" + ", ".join(f'"{c}"' for c in option["choices"]) + "]"
    if option["name"] in PATHS and option["kind"] == "str":
        return "Path"
    if option["name"] in PATH_LISTS and option["group"] is None:
        return "Paths"
    if option["name"] == "cpus":
        return "Union[int, float, str]"
    return TYPES[option["kind"]]


def option_lines(options):
    lines = []
    for o in options:
        lines += [f"    #: {line}" for line in textwrap.wrap(o["doc"], 88)]
        lines.append(f"    {o['name']}: {option_type(o)}")
    return lines


def options(model):
    groups = {"limits": "Limits", "network": "Network"}
    lines = [OPTIONS_HEAD]
    for group, title in groups.items():
        lines += ["", f"class {title}(TypedDict, total=False):",
                  f'    """The option `{group}` of a sandbox."""', ""]
        lines += option_lines(o for o in model["options"] if o["group"] == group) + [""]
    lines += ["", "class SandboxOptions(TypedDict, total=False):",
              '    """Options of a sandbox; caisson(1) and caisson-policy(5) describe them."""', ""]
    lines += option_lines(o for o in model["options"] if o["group"] is None)
    lines += ["    limits: Limits", '    network: Union[Network, Literal["none", "all"]]']
    text = "\n".join(lines) + "\n"
    while "\n\n\n\n" in text:
        text = text.replace("\n\n\n\n", "\n\n\n")
    return text
