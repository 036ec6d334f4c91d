#!/usr/bin/env python3
"""model.py: the public API as data, for the generators of the language packages.

It is read from the headers of include/caisson (statuses, flags, structs, functions and their
comments) and from `caisson policy schema` (the options of a sandbox). Run by itself it prints
the model as JSON.

A field of a struct has a kind:

  str        const char *, NULL allowed      strv       NULL-terminated list of strings
  bytes      pointer and length              list       pointer to structs and a count
  struct     a struct inside this one        bool       uint32_t that is 0 or 1
  u32 i32 u64 i64 u16 f64 enum               a number
  handle     a pointer to an opaque type     callback   a function; its context follows it
  chars      an array of char

The length of `bytes`, the count of a `list` and `size` are not fields of the model: generators
name them by `len`, `count` of the field they belong to.
"""
import json
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ("caisson.h", "workspace.h", "records.h")

# uint32_t fields that are numbers. All others in results are truth values.
NUMBERS = {"size", "flags", "mode", "mode_before", "mode_after", "nlink", "context", "kind", "ops",
           "event_count"}
HANDLES = ("csn_sandbox", "csn_process", "csn_cancel", "csn_watch", "csn_error")
SCALARS = {"uint64_t": "u64", "int64_t": "i64", "int32_t": "i32", "uint16_t": "u16", "double": "f64",
           "size_t": "u64", "int": "i32"}


def squeeze(text):
    """The text of a C comment as one line."""
    return " ".join(re.sub(r"\n\s*\*(?!/)", " ", text).split())


def comment_before(text, at):
    """The comment that ends right before position `at`, unless it is a heading."""
    found = re.search(r"^/\*((?:(?!\*/).)*)\*/\n\Z", text[:at], re.S | re.M)
    return "" if not found or found.group(1).startswith(" ----") else squeeze(found.group(1))


def split_fields(body):
    """(declaration, comment) for each field: the comment may stand behind it or above it."""
    above = ""
    for part in re.finditer(r"\s*(?:/\*(?P<above>.*?)\*/|(?P<decl>[^;/]+(?:/\*.*?\*/[^;/]*)*);"
                            r"(?P<after>[ ]*(?:/\*.*?\*/)?))", body, re.S):
        if part.group("above") is not None:
            above = squeeze(part.group("above"))
            continue
        decl = re.sub(r"/\*.*?\*/", " ", part.group("decl"), flags=re.S)
        after = squeeze(re.sub(r"^\s*/\*|\*/$", "", part.group("after").strip()))
        yield " ".join(decl.split()), after or above
        above = ""


def declarators(decl):
    """(type, name) of `const char *a, *b` or `uint64_t x, y`."""
    callback = re.match(r"(.*)\(\*(\w+)\)\((.*)\)$", decl)
    if callback:
        yield f"fn({callback.group(3)})", callback.group(2)
        return
    first, *rest = decl.split(",")
    base = re.match(r"((?:const )?\w+)", first).group(1)
    for one in [first[len(base):]] + rest:
        name = re.search(r"(\w+)(?:\[(.*)\])?$", one.strip())
        stars = one.strip()[:name.start()].strip()
        kind = base + (f" {stars}" if stars else "")
        yield kind + (f" [{name.group(2)}]" if name.group(2) else ""), name.group(1)


def kind_of(ctype, name, enums):
    if ctype.startswith("fn("):
        return "callback"
    if ctype == "const char *const *":
        return "strv"
    if ctype == "const char *":
        return "str"
    if ctype == "const void *":
        return "bytes"
    if ctype.startswith("char ["):
        return "chars"
    if ctype == "void *":
        return "context"
    if ctype.endswith("_fn"):
        return "callback"
    base = ctype.removeprefix("const ").split(" ")[0]
    if base in HANDLES:
        return "handle"
    if ctype == "uint32_t":
        return "u32" if name in NUMBERS else "bool"
    if base in enums:
        return "enum"
    if base in SCALARS and "*" not in ctype:
        return SCALARS[base]
    if base.startswith("csn_"):
        return "list" if "*" in ctype else "struct"
    raise SystemExit(f"model.py: no kind for {ctype} {name}")


def length_of(name, names):
    """The field that has the length or count of field `name`, or None."""
    single = name.removesuffix("s")
    for candidate in (f"{name}_len", f"{single}_count", f"{name}_count", f"{single}_len"):
        if candidate in names:
            return candidate
    if name == "data":
        return "len" if "len" in names else "size"
    if name in ("items", "changes"):
        return "count"
    prefix = f"{name.split('_')[0]}_len"
    return prefix if prefix in names else None


def struct(name, body, doc, enums):
    rows = [(ctype, field, text) for decl, text in split_fields(body)
            for ctype, field in declarators(decl)]
    names = {field for _, field, _ in rows}
    fields, lengths = [], set()
    for ctype, field, text in rows:
        kind = kind_of(ctype, field, enums)
        entry = {"name": field, "ctype": ctype, "kind": kind, "doc": text}
        length = length_of(field, names) if kind in ("str", "bytes", "list") else None
        if length and length != field:
            if kind == "str":
                entry["kind"] = "bytes"
            entry["count" if kind == "list" else "len"] = length
            lengths.add(length)
        if kind in ("list", "struct", "enum"):
            entry["of"] = ctype.removeprefix("const ").split(" ")[0]
        fields.append(entry)
    sized = bool(rows) and rows[0][1] == "size"
    fields = [f for f in fields
              if f["name"] not in lengths and not (sized and f is fields[0])
              and f["kind"] != "context"]
    return {"name": name, "doc": doc, "sized": sized, "fields": fields}


def read_header(name, model):
    text = (TOP / "include/caisson" / name).read_text()
    for m in re.finditer(r"^#define (CSN_[A-Z_]+?)\s+\(1u << (\d+)\)(?:[ ]*/\*(.*?)\*/)?", text,
                         re.M | re.S):
        comment = m.group(3) or ""
        model["flags"].append({"name": m.group(1), "value": 1 << int(m.group(2)),
                               "doc": squeeze(comment)})
    for m in re.finditer(r"^#define (CSN_[A-Z]+)\s+(\d+)u?\b", text, re.M):
        model["constants"].append({"name": m.group(1), "value": int(m.group(2))})
    for m in re.finditer(r"^#define (CSN_EVENT_[A-Z]+)\s+(\d+)u(?:\s*/\*(.*?)\*/)?", text, re.M):
        model["events"].append({"name": m.group(1), "value": int(m.group(2)),
                                "doc": squeeze(m.group(3) or "")})
    for m in re.finditer(r"^typedef enum (\w+) \{\n(.*?)^\} (\w+);", text, re.M | re.S):
        values, number = [], 0
        for row in re.finditer(r"(CSN_\w+)(?: = (\d+))?,(?:\s*/\*(.*?)\*/)?", m.group(2), re.S):
            number = int(row.group(2)) if row.group(2) else number + 1
            values.append({"name": row.group(1), "value": number, "doc": squeeze(row.group(3) or "")})
        model["enums"][m.group(3)] = {"doc": comment_before(text, m.start()), "values": values}
    for m in re.finditer(r"^typedef struct (\w+) \{\n(.*?)^\} \w+;", text, re.M | re.S):
        model["structs"][m.group(1)] = struct(m.group(1), m.group(2),
                                              comment_before(text, m.start()), model["enums"])
    for m in re.finditer(r"^CSN_API\s+(.*?)(\w+)\(([^;]*?)\);([ ]*/\*.*?\*/)?", text, re.M | re.S):
        params = []
        for p in " ".join(m.group(3).split()).split(","):
            if p.strip() != "void":
                params.extend({"ctype": t, "name": n} for t, n in declarators(p.strip()))
        after = squeeze(re.sub(r"^\s*/\*|\*/$", "", (m.group(4) or "").strip()))
        model["functions"].append({"name": m.group(2), "returns": " ".join(m.group(1).split()),
                                   "params": params, "header": name,
                                   "doc": comment_before(text, m.start()) or after})


def read_statuses():
    text = (TOP / "include/caisson/caisson.h").read_text()
    rows = re.findall(r'X\((\w+), (-?\d+), "(\w+)", (\d+), "([^"]*)"\)', text)
    return [{"name": n, "value": int(v), "word": w, "http": int(h), "text": t}
            for n, v, w, h, t in rows]


def option_kind(schema):
    """str, bool, strv, env, rules, number (also text such as 2G) or choice."""
    if "enum" in schema:
        return "choice"
    if schema.get("type") in ("string", "boolean"):
        return {"string": "str", "boolean": "bool"}[schema["type"]]
    if schema.get("type") == "array":
        return "rules"
    types = [s.get("type") for s in schema.get("anyOf", [])]
    if "object" in types:
        return "env"
    return "strv" if "array" in types else "number"


def read_options(program):
    schema = json.loads(subprocess.run([program, "policy", "schema"], check=True,
                                       stdout=subprocess.PIPE, text=True).stdout)
    found = []

    def add(group, properties):
        for name, s in properties.items():
            if group is None and name in ("limits", "network", "profiles", "$schema",
                                          "allow_commands"):
                continue
            found.append({"group": group, "name": name, "kind": option_kind(s),
                          "choices": s.get("enum"), "doc": s.get("description", "")})

    top = schema["properties"]
    add(None, top)
    add("limits", top["limits"]["properties"])
    add("network", next(s for s in top["network"]["anyOf"] if "properties" in s)["properties"])
    return found


def load(program):
    """The model. program: the built `caisson`."""
    model = {"statuses": read_statuses(), "flags": [], "constants": [], "events": [], "enums": {},
             "structs": {}, "functions": [], "options": read_options(program)}
    for name in HEADERS:
        read_header(name, model)
    return model


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: model.py PROGRAM (the built caisson)")
    json.dump(load(sys.argv[1]), sys.stdout, indent=1)
    print()
