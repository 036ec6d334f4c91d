"""methods.py: which method each C function has, and the asyncio classes, made of the others."""
import ast
import textwrap

# C function -> "Class.method", or "function" of the package.
METHODS = {
    "csn_version": "version", "csn_set_log": "set_log", "csn_cancel_new": "Cancel",
    "csn_cancel_fire": "Cancel.fire", "csn_open": "Sandbox", "csn_connect": "Sandbox.connect",
    "csn_close": "Sandbox.close", "csn_destroy": "Sandbox.destroy", "csn_reset": "Sandbox.reset",
    "csn_destroy_id": "destroy_id", "csn_destroy_id_report": "destroy_id", "csn_forget": "forget",
    "csn_on_denial": "Sandbox.on_denial", "csn_id": "Sandbox.id", "csn_info": "Sandbox.info",
    "csn_sandboxes": "sandboxes", "csn_set_workdir": "Sandbox.set_workdir",
    "csn_cleanup": "Sandbox.cleanup", "csn_cleanup_with": "Sandbox.cleanup",
    "csn_extend": "Sandbox.extend", "csn_pause": "Sandbox.pause", "csn_resume": "Sandbox.resume",
    "csn_exec": "Sandbox.exec", "csn_sh": "Sandbox.sh", "csn_start": "Sandbox.start",
    "csn_start_sh": "Sandbox.start_sh", "csn_process_open": "Sandbox.process",
    "csn_process_pid": "Process.pid", "csn_processes": "Sandbox.processes",
    "csn_process_logs": "Process.logs", "csn_process_wait": "Process.wait",
    "csn_process_signal": "Process.signal", "csn_process_write": "Process.write",
    "csn_process_close_stdin": "Process.close_stdin", "csn_process_resize": "Process.resize",
    "csn_wait_port": "Sandbox.wait_port", "csn_wait_log": "Sandbox.wait_log",
    "csn_read": "Sandbox.read", "csn_read_bytes": "Sandbox.read_bytes",
    "csn_write": "Sandbox.write", "csn_write_from": "Sandbox.write_from",
    "csn_write_many": "Sandbox.write_many", "csn_write_tar": "Sandbox.write_tar",
    "csn_edit": "Sandbox.edit", "csn_delete": "Sandbox.delete", "csn_mkdir": "Sandbox.mkdir",
    "csn_rename": "Sandbox.rename", "csn_stat": "Sandbox.stat", "csn_list": "Sandbox.list",
    "csn_glob": "Sandbox.glob", "csn_grep": "Sandbox.grep", "csn_watch_open": "Sandbox.watch",
    "csn_watch_next": "Watch.next", "csn_network_set": "Sandbox.network_set",
    "csn_network": "Sandbox.network", "csn_export": "Sandbox.export",
    "csn_import": "Sandbox.import_", "csn_export_tar": "Sandbox.export_tar",
    "csn_import_tar": "Sandbox.import_tar", "csn_would_allow": "Sandbox.would_allow",
    "csn_doctor": "doctor", "csn_snapshot": "Sandbox.snapshot",
    "csn_rollback": "Sandbox.rollback", "csn_fork": "Sandbox.fork",
    "csn_snapshot_as": "Sandbox.snapshot_as", "csn_snapshots": "Sandbox.snapshots",
    "csn_undo": "Sandbox.undo", "csn_discard": "Sandbox.discard", "csn_diff": "Sandbox.diff",
    "csn_commit": "Sandbox.commit", "csn_audit_read": "audit_read",
    "csn_audit_verify": "audit_verify", "csn_audit_read_file": "audit_read_file",
    "csn_audit_verify_file": "audit_verify_file", "csn_audit_logs": "audit_logs",
    "csn_audit_remove": "audit_remove", "csn_aside_list": "aside_list",
    "csn_aside_restore": "aside_restore", "csn_aside_remove": "aside_remove",
    "csn_register_backend": "register_backend",
}
# Functions without a method, and why.
NONE = {
    "csn_status_name": "Error.code is the word", "csn_status_text": "part of Error.message",
    "csn_status_http": "of use to servers only", "csn_config_parse": "Sandbox calls it",
    "csn_error_set": "a backend raises Error",
}
NONE_ENDING = {"_free": "results are plain objects"}
NONE_BEGINNING = {"csn_error_": "the attributes of Error"}

SANDBOX_PARTS = {"_commands.py": "Commands", "_files.py": "Files", "_workspace.py": "Workspace",
                 "_sandbox.py": "Sandbox"}
BY_HAND = {"stream", "stream_sh", "connect", "close", "on_denial", "id", "pid"}
WRAPPED = {"Process": "AsyncProcess", "Watch": "AsyncWatch", "S": "AsyncSandbox"}
SYNC_FUNCTIONS = {"version", "set_log"}

HEAD = '''"""The asyncio classes: the methods of the others, on threads. Generated: do not edit.

Cancelling the task ends the command, or the wait, that it is in."""
from __future__ import annotations
'''


def parse(package, name):
    return ast.parse((package / name).read_text())


def classes(package):
    """Class name -> its methods; the parts of Sandbox count as Sandbox."""
    found = {"Sandbox": {}}
    for path in sorted(package.glob("*.py")):
        if path.name in ("_aio.py", "_abi.py", "_results.py"):
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                title = "Sandbox" if SANDBOX_PARTS.get(path.name) == node.name else node.name
                found.setdefault(title, {}).update(
                    {f.name: f for f in node.body if isinstance(f, ast.FunctionDef)})
            elif isinstance(node, ast.FunctionDef):
                found[node.name] = {}
    return found


def has_reason(name):
    return name in NONE or any(name.endswith(e) for e in NONE_ENDING) or \
        any(name.startswith(b) for b in NONE_BEGINNING)


def missing(model, package):
    """Functions of the headers without a method, and methods of the table that do not exist."""
    have, wrong = classes(package), []
    for function in model["functions"]:
        name = function["name"]
        if name not in METHODS and not has_reason(name):
            wrong.append(f"{name} has no method and no reason for that: generator/methods.py")
    for name, place in METHODS.items():
        title, _, method = place.partition(".")
        if title not in have or (method and method not in have[title]):
            wrong.append(f"{name} has no method: {place} does not exist")
    return wrong


# ---- asyncio ----

def origins(package):
    """Name -> import statement, for all that annotations of the package may mention."""
    found = {}
    for name in [*SANDBOX_PARTS, "_process.py", "_functions.py"]:
        for node in parse(package, name).body:
            if isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                for alias in node.names:
                    found[alias.asname or alias.name] = (module, alias)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    found[alias.asname or alias.name] = (None, alias)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                title = node.targets[0].id
                found.setdefault(title, (f".{name[:-3]}", ast.alias(title)))
            elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                found.setdefault(node.name, (f".{name[:-3]}", ast.alias(node.name)))
    return found


def parameters(function, is_method):
    """(signature, forwarded arguments, names of callbacks, takes cancel)."""
    args = function.args
    shown, passed, callbacks, cancellable = [], [], [], False
    positional = args.args[1:] if is_method else args.args
    defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
    rows = [(a, d, False) for a, d in zip(positional, defaults)]
    rows += [(a, d, True) for a, d in zip(args.kwonlyargs, args.kw_defaults)]
    star = False
    for arg, default, keyword in rows:
        if arg.arg == "cancel":
            cancellable = True
            passed.append("cancel=cancel")
            continue
        if keyword and not star:
            shown.append("*")
            star = True
        text = f"{arg.arg}: {ast.unparse(arg.annotation)}"
        shown.append(text + (f" = {ast.unparse(default)}" if default is not None else ""))
        passed.append(f"{arg.arg}={arg.arg}" if keyword else arg.arg)
        if arg.arg.startswith("on_"):
            callbacks.append(arg.arg)
    return shown, passed, callbacks, cancellable


def wrapped_lines(head, items, tail, indent):
    """head and items, at most 96 columns wide; what follows the first line hangs below it."""
    hang = " " * len(indent + head)
    if len(hang) > 60:
        hang = indent + "    "
    pieces = ", ".join(items).split(", ")
    pieces = [piece + ", " for piece in pieces[:-1]] + [pieces[-1] + tail]
    lines = [indent + head]
    for piece in pieces:
        if len(lines[-1]) + len(piece.rstrip()) > 96:
            lines.append(hang)
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def function_lines(function, target, indent, is_method):
    shown, passed, callbacks, cancellable = parameters(function, is_method)
    returns = ast.unparse(function.returns)
    # In a class with a method `list`, the word is that method.
    result = WRAPPED.get(returns, returns).replace("list[", "List[")
    items = ["self", *shown] if is_method else shown
    lines = wrapped_lines(f"async def {function.name}(", items, f") -> {result}:", indent)
    inner = indent + "    "
    doc = " ".join(ast.get_docstring(function).split())
    lines += textwrap.wrap(f'"""{doc}"""', 96, initial_indent=inner, subsequent_indent=inner)
    lines += [f"{inner}{name} = on_loop({name})" for name in callbacks]
    call = f"{target}.{function.name}({', '.join(passed)})"
    start = "call_cancellable(lambda cancel: " if cancellable else "call(lambda: "
    end = ", close_later)" if returns in WRAPPED else ")"
    open_, close = ("", "")
    if returns in WRAPPED:
        wrap = "type(self)" if returns == "S" else result
        open_, close = f"{wrap}._of(", ")"
    if result != "None":
        open_ = "return " + open_
    lines += wrapped_lines(f"{open_}await {start}", [call + end + close], "", inner)
    return lines + [""]


def names_in(functions):
    found = set()
    for function in functions:
        args = function.args
        trees = [a.annotation for a in args.args + args.kwonlyargs if a.annotation]
        trees += [function.returns] + [d for d in args.defaults + args.kw_defaults if d]
        for tree in trees:
            found |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return found - set(WRAPPED) - {"Cancel", "S"}


def import_lines(names, known):
    modules = {}
    lines = []
    for name in sorted(names & set(known)):
        module, alias = known[name]
        if module is None:
            lines.append(f"import {ast.unparse(alias)}")
        else:
            modules.setdefault(module, []).append(ast.unparse(alias))
    order = sorted(modules, key=lambda m: (m.startswith("."), m))
    for module in order:
        text = f"from {module} import ({', '.join(sorted(modules[module]))})"
        lines += textwrap.wrap(text, 96, subsequent_indent=" " * (len(module) + 14))
    return lines


def asynchronous(package):
    """The text of _aio.py."""
    have = classes(package)
    public = {title: [f for n, f in have[title].items()
                      if not n.startswith("_") and n not in BY_HAND]
              for title in ("Sandbox", "Process", "Watch")}
    functions = [f for f in parse(package, "_functions.py").body
                 if isinstance(f, ast.FunctionDef) and not f.name.startswith("_")
                 and f.name not in SYNC_FUNCTIONS]
    every = [f for part in public.values() for f in part] + functions
    used = [f for f in every if f.name != "fork"] + [f for f in every if f.name == "fork"]
    lines = [HEAD, "from typing import List", *import_lines(names_in(used), origins(package)),
             "from . import _functions", "from ._bridge import (ProcessBase, SandboxBase, "
             "WatchBase, call, call_cancellable,", "                      close_later, on_loop)",
             ""]
    for title, part in (("Process", public["Process"]), ("Watch", public["Watch"]),
                        ("Sandbox", public["Sandbox"])):
        lines += ["", f"class Async{title}({title}Base):",
                  f'    """{title}, with coroutines for methods."""', ""]
        for function in part:
            lines += function_lines(function, "self._sync", "    ", True)
    for function in functions:
        lines += ["", *function_lines(function, "_functions", "", False)]
    return "\n".join(lines).rstrip("\n") + "\n"
