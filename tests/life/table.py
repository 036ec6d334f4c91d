#!/usr/bin/env python3
"""table.py [caller|user] [WORDS...]: what changes in the world x what is asked, on each backend. TAP.

A row is one change, made while a sandbox with a background process runs. Its columns are the
questions that are asked afterwards, each in a world of its own, with the expected outcome: a
pattern that the outcome's words must match. After each case the invariant of world.py must hold.
With WORDS only the cases run whose names have all of them.

An outcome is what the answer says together with what happened: a write that returns 0 `works` if
the file is in the sandbox's directory and nowhere else, and a command that fails has made no file.
Alternatives (|) stand where the promise itself leaves a choice.
"""
import concurrent.futures
import fnmatch
import os
import select
import shutil
import signal
import subprocess
import sys

from world import (ROOT, USER, Violation, World, can_mount, enter_mount_namespace, eventually,
                   in_mount_namespace, in_pid_namespace, processes_with, send_signal)

NAME = "box"
SEED = "the file of the first directory\n"
OTHER_HOST = "another-host.example"
OTHER_BOOT = "00000000-0000-4000-8000-000000000000"


# ---- changes: functions of (world, sandbox) ----

def nothing(_w, _sb):
    pass


def remove_runtime_directory(w, _sb):
    shutil.rmtree(w.run)


def use_another_runtime_directory(w, _sb):
    w.env["XDG_RUNTIME_DIR"] = w.mkdir(os.path.join(w.top, "run2"))


def remove_sockets(w, _sb):
    for path in w.sockets():
        os.unlink(path)


def kill_keeper(_w, sb):
    sb.signal(signal.SIGKILL)
    if not eventually(lambda: not sb.alive()):
        raise Violation("SIGKILL did not end the keeper")


def kill_everything(_w, sb):
    sb.kill_all()


def reboot(_w, sb):
    sb.edit_keeper_file(boot=OTHER_BOOT)
    sb.kill_all()


def move_to_another_host(_w, sb):
    sb.edit_keeper_file(boot=OTHER_BOOT, host=OTHER_HOST)
    sb.kill_all()


def stop_keeper(_w, sb):
    sb.signal(signal.SIGSTOP)


def continue_keeper(_w, sb):
    sb.signal(signal.SIGCONT)


def expire(w, sb):
    a = w.call("extend", sb.id, "20ms")
    if a.status != 0:
        raise Violation(f"extend: {a}")
    if not eventually(lambda: not sb.alive()):
        raise Violation("the keeper outlives its lifetime")


def kill_caller(w, sb):
    """A running exec is killed: its command must end."""
    mark = "86300." + w.unique("").replace("x", "0")
    caller = w.start("exec", sb.id, "--", "sleep", mark)
    inside = eventually(lambda: [p for p, c in processes_with([mark]).items() if c.startswith("sleep ")])
    caller.kill()
    caller.wait()
    if not inside:
        raise Violation("the command did not start")
    if not eventually(lambda: not processes_with([mark])):
        raise Violation("the command outlives its killed caller")


def gateways(sb):
    found = [p for p, c in processes_with([sb.id]).items() if c.startswith("caisson-gateway")]
    if not found:
        raise Violation("there is no gateway")
    return found


def kill_gateway(_w, sb):
    for pid in gateways(sb):
        send_signal(pid, signal.SIGKILL)


def stop_gateway(_w, sb):
    for pid in gateways(sb):
        send_signal(pid, signal.SIGSTOP)


def delete_workspace(_w, sb):
    shutil.rmtree(sb.workspace)


def replace_by_file(w, sb):
    shutil.rmtree(sb.workspace)
    w.put(sb.workspace, "a file\n")


def rename_workspace(_w, sb):
    os.rename(sb.workspace, sb.workspace + ".old")
    sb.workspace += ".old"


def replace_by_directory(w, sb):
    old = sb.workspace
    rename_workspace(w, sb)
    w.mkdir(old)
    w.put(os.path.join(old, "seed"), "the file of the second directory\n")


def unmount_workspace(w, sb):
    w.unmount(sb.workspace)
    sb.workspace = os.path.join(w.top, "disk")


def close_workspace(_w, sb):
    os.chmod(sb.workspace, 0)


def open_workspace(_w, sb):
    os.chmod(sb.workspace, 0o700)


def turn_link(w, _sb):
    link = os.path.join(w.top, "current")
    os.symlink("rel2", link + ".new")
    os.rename(link + ".new", link)


def remove_record(_w, sb):
    shutil.rmtree(sb.record())


# ---- what is there before: functions of the world that return the workspace ----

def mounted_workspace(w):
    w.mkdir(os.path.join(w.top, "disk"))
    w.mount("--bind", os.path.join(w.top, "disk"), w.workspace)
    return w.workspace


def linked_workspace(w):
    w.mkdir(os.path.join(w.top, "rel1"))
    w.put(os.path.join(w.mkdir(os.path.join(w.top, "rel2")), "seed"), "the file of rel2\n")
    os.symlink("rel1", os.path.join(w.top, "current"))
    return os.path.join(w.top, "current")


# ---- questions: prepare(world, sandbox) before the change, ask(world, sandbox, through) after ----

def failure(a):
    return "fails: " + " ".join(a.err.split()) if a.err.strip() else f"status {a.status} without a message"


def effect(w, sb, a, name, failed):
    """The outcome of something that should have made the file `name`."""
    at = w.files_named(name)
    if a.status == 0 and at == [os.path.join(sb.workspace, name)]:
        return "works"
    if a.status in failed and not at:
        return failure(a)
    return f"{a}; the file is at {at or 'no place'}"


def ask_list(w, sb, through):
    return w.listed(through).get(sb.id, "absent")


def ask_info(w, sb, through):
    a = w.call("info", sb.id, through=through)
    return "works" if a.status == 0 and sb.id in a.out else failure(a)


def ask_ps(w, sb, through):
    a = w.call("ps", sb.id, through=through)
    return "works" if a.status == 0 and sb.marks[0] in a.out else failure(a)


def ask_exec(w, sb, through):
    name = w.unique("exec")
    return effect(w, sb, w.call("exec", sb.id, "-c", f"echo >{name}", through=through), name, (125, 126))


def ask_write(w, sb, through):
    name = w.unique("write")
    return effect(w, sb, w.call("write", sb.id, name, stdin=b"text", through=through), name, (1,))


def ask_read(w, sb, through):
    a = w.call("cat", sb.id, "seed", through=through)
    if a.status == 0 and a.out != SEED:
        return f"reads {a.out.strip()}"
    return "works" if a.status == 0 else failure(a)


def ask_destroy(w, sb, through):
    a = w.call("destroy", sb.id, through=through)
    if a.status == 0:
        sb.expect_nothing_left()
        return "ends"
    if a.status != 1:
        return str(a)
    if os.path.exists(sb.record()):
        return failure(a)
    sb.expect_nothing_left()
    return f"gone: {failure(a)}"


def ask_name(w, _sb, _through):
    """Is the name free?"""
    a = w.call("create", "--name", NAME, "--workspace", w.mkdir(os.path.join(w.top, "ws3")))
    if a.status != 0:
        return failure(a)
    end = w.call("destroy", NAME)
    return "works" if end.status == 0 and not end.err else f"the new one cannot be destroyed: {end}"


def prepare_watch(w, sb):
    sb.watch = w.start("watch", sb.id, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def sees():
        w.put(os.path.join(sb.workspace, "seen"), "")
        return select.select([sb.watch.stdout], [], [], 0.02)[0]
    if not eventually(sees):
        raise Violation("watch sees nothing")


def ask_watch(w, sb, _through):
    """Does a running watch end with its sandbox?"""
    try:
        if sb.alive():
            w.call("destroy", sb.id)
        return "ends" if eventually(lambda: sb.watch.poll() is not None) else "watch still runs"
    finally:
        sb.watch.kill()
        sb.watch.communicate()


def prepare_protected(w, sb):
    a = w.call("exec", sb.id, "-d", "-c", "until [ -e go ]; do sleep 0.02; done; mkdir -p .git/hooks; "
               "echo run >.git/hooks/post-checkout; echo >done")
    if a.status != 0:
        raise Violation(f"exec -d: {a}")


def ask_protected(w, sb, _through):
    """Is a hook that a background process writes still there after destroy?"""
    w.put(os.path.join(sb.workspace, "go"), "")
    if not eventually(lambda: os.path.exists(os.path.join(sb.workspace, "done"))):
        return "the background process has ended"
    hook = os.path.join(sb.workspace, ".git", "hooks", "post-checkout")
    if not os.path.exists(hook):
        return "the hook was not written"
    a = w.call("destroy", sb.id)
    if a.status != 0:
        return failure(a)
    return "left behind" if os.path.lexists(hook) else "removed"


def ask_end(w, sb, _through):
    """Does it end without being told to?"""
    return "ends" if eventually(lambda: not sb.alive()) else "the keeper still runs"


QUESTIONS = {
    "list": ask_list, "info": ask_info, "ps": ask_ps, "exec": ask_exec, "write": ask_write,
    "read": ask_read, "destroy": ask_destroy, "name": ask_name, "watch": ask_watch,
    "protected": ask_protected, "end": ask_end,
}
PREPARE = {"watch": prepare_watch, "protected": prepare_protected}
JAIL_ONLY = {"protected"}


# ---- the table ----

class Row:
    def __init__(self, name, change, expect, *, setup=None, undo=None, through=None, needs=None, slow=False,
                 options=()):
        self.name, self.change, self.expect = name, change, expect
        self.setup, self.undo, self.through = setup, undo, through
        self.needs = needs  # "mounts": a private mount namespace; "user": a caller without root's rights
        self.slow = slow    # waits for deadlines rather than working
        self.options = options  # of create, for rows that only a jail has


def lives(**other):
    return {"list": "running", "info": "works", "ps": "works", "exec": "works", "write": "works",
            "read": "works", "destroy": "ends", "name": "fails: *taken*", **other}


def dead(**other):
    """A dead sandbox may have lost its record already, to its sweeper: then there is none to destroy."""
    return {"list": "absent", "info": "fails: *", "exec": "fails: *", "write": "fails: *",
            "read": "fails: *", "destroy": "ends|gone: *no sandbox*", "name": "works", **other}


def without_workspace(reason="fails: *workspace*"):
    return {"list": "running", "info": "works", "exec": reason, "write": reason, "read": reason,
            "destroy": "ends"}


MOVED = without_workspace("works|fails: *workspace*")
SILENT = "fails: *not answering*"
NETWORK = ("--allow", "host.invalid:443")
LIMITS = ("--pids", "256")  # in a control group, where the caller may make one

ROWS = [
    Row("nothing changes", nothing, lives(watch="ends", protected="removed")),
    Row("the runtime directory is removed", remove_runtime_directory, lives(watch="ends")),
    Row("the sockets are removed", remove_sockets, lives()),
    Row("another runtime directory is set", use_another_runtime_directory, lives()),
    Row("asked in a mount namespace with an empty runtime directory", nothing,
        {"list": "running", "info": "works", "exec": "works", "destroy": "ends"},
        through=in_mount_namespace, needs="mounts"),
    Row("asked in another pid namespace", nothing,
        {"list": "running", "destroy": "ends|fails: *"}, through=in_pid_namespace, needs="mounts"),
    Row("with limits, asked in another pid namespace", nothing,
        {"list": "running", "destroy": "ends|fails: *"}, through=in_pid_namespace, needs="mounts",
        options=LIMITS),
    Row("the keeper is killed", kill_keeper, dead(watch="ends")),
    Row("every process is killed", kill_everything, dead()),
    Row("with limits, the keeper is killed", kill_keeper, dead(), options=LIMITS),
    Row("with limits, every process is killed", kill_everything, dead(), options=LIMITS),
    Row("its lifetime is over", expire, dead(watch="ends")),
    Row("with limits, its lifetime is over", expire, dead(), options=LIMITS),
    Row("a caller is killed", kill_caller, {"list": "running", "exec": "works", "destroy": "ends"}),
    Row("the machine starts again", reboot,
        {"list": "other boot", "info": "fails: *", "exec": "fails: *", "destroy": "ends"}),
    Row("the record is of another host", move_to_another_host,
        {"list": "other host", "exec": "fails: *", "destroy": f"fails: *{OTHER_HOST}*"}),
    Row("the keeper is stopped", stop_keeper,
        {"list": "not answering", "info": SILENT, "ps": SILENT, "exec": SILENT,
         "read": f"works|{SILENT}", "destroy": "ends"}, undo=continue_keeper, slow=True),
    Row("the gateway is killed", kill_gateway, {"list": "running", "destroy": "ends"}, options=NETWORK),
    Row("the gateway is stopped", stop_gateway, {"list": "running", "destroy": "ends"}, options=NETWORK),
    Row("the workspace is deleted", delete_workspace, without_workspace()),
    Row("the workspace is replaced by a file", replace_by_file, without_workspace()),
    Row("the workspace is unmounted", unmount_workspace, MOVED,
        setup=mounted_workspace, needs="mounts"),
    Row("the workspace is closed to its owner", close_workspace,
        without_workspace("fails: *workspace*|fails: *ermission denied*"), undo=open_workspace, needs="user"),
    Row("the workspace is renamed", rename_workspace, {**MOVED, "protected": "removed"}),
    Row("another directory is in the place of the workspace", replace_by_directory,
        {**MOVED, "protected": "removed"}),
    Row("the link to the workspace leads elsewhere", turn_link, lives(protected="removed"),
        setup=linked_workspace),
    Row("the record is removed", remove_record, {"end": "ends"}, slow=True),
]


# ---- one case ----

def furnish(w, row):
    """The workspace with what the questions need in it; returns its path."""
    workspace = row.setup(w) if row.setup else w.workspace
    w.put(os.path.join(workspace, "seed"), SEED)
    w.mkdir(os.path.join(workspace, ".git"))
    return workspace


def check_end(w, sb):
    """The invariant, after the question."""
    if sb.alive():
        w.expect_usable(sb)
        w.expect_destroyable(sb)
    elif not os.path.exists(sb.record("keeper")):
        sb.expect_nothing_left()
    elif w.listed().get(sb.id) == "other boot":
        w.expect_destroyable(sb)
    elif w.listed().get(sb.id) != "other host":
        sb.expect_nothing_left()


def play(w, row, question):
    sb = w.create(*row.options, name=NAME, workspace=furnish(w, row))
    w.background(sb)
    if question in PREPARE:
        PREPARE[question](w, sb)
    row.change(w, sb)
    outcome = QUESTIONS[question](w, sb, row.through(w) if row.through else ())
    if row.undo:
        row.undo(w, sb)
    patterns = row.expect[question].split("|")
    if not any(fnmatch.fnmatchcase(outcome, p) for p in patterns):
        raise Violation(f"{outcome} (expected: {row.expect[question]})")
    check_end(w, sb)


def run_case(row, question, backend, user):
    """None, or why it failed."""
    w = World(backend, user)
    try:
        play(w, row, question)
        return None
    except Violation as v:
        return str(v)
    finally:
        for sb in w.sandboxes if row.undo else ():
            if os.path.exists(sb.workspace):
                row.undo(w, sb)
        w.end()


# ---- all of them ----

def why_skipped(row, user):
    if row.needs == "mounts" and not can_mount():
        return "needs root and a mount namespace of its own"
    if row.needs == "user" and ROOT and not user:
        return "root may read every directory"
    return None


def backends(user):
    """Those that work here; the others with their reason."""
    found = {}
    for backend in ("jail", "local"):
        w = World(backend, user)
        a = w.call("run", "--workspace", w.workspace, "--", "true")
        found[backend] = None if a.status == 0 else " ".join(a.err.split())
        w.end()
    return found


def report(number, name, why, skip):
    name = name.replace("#", "")
    if skip:
        print(f"ok {number} - {name} # SKIP {skip}")
    elif why:
        print(f"not ok {number} - {name}: {why.replace('#', '')}")
    else:
        print(f"ok {number} - {name}")
    sys.stdout.flush()


def run_all(who, words):
    """The number of failed cases."""
    user = who == "user"
    number, failed, waiting = 0, 0, {}
    with concurrent.futures.ThreadPoolExecutor(3) as fast, \
            concurrent.futures.ThreadPoolExecutor(16) as slow:
        for backend, missing in backends(user).items():
            for row in ROWS:
                for question in row.expect:
                    name = f"{backend}: {row.name}: {question}"
                    jail_only = question in JAIL_ONLY or row.options
                    if jail_only and backend != "jail" or not all(x in name for x in words):
                        continue
                    skip = why_skipped(row, user) or (missing and not os.environ.get("CSN_MUST_WORK") and missing)
                    if skip:
                        number += 1
                        report(number, name, None, skip)
                        continue
                    pool = slow if row.slow else fast
                    waiting[pool.submit(run_case, row, question, backend, user)] = name
        for done in concurrent.futures.as_completed(waiting):
            number += 1
            failed += done.result() is not None
            report(number, waiting[done], done.result(), None)
    print(f"1..{number}")
    return failed


def main():
    who = sys.argv[1] if len(sys.argv) > 1 else "caller"
    if who == "user" and not ROOT:
        print("1..0 # SKIP the caller is an ordinary user already")
        return 0
    enter_mount_namespace()
    if who == "user":
        reach = subprocess.run(["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups",
                                "test", "-x", os.environ["CAISSON"]], check=False)
        if reach.returncode != 0:
            print("1..0 # SKIP a user cannot reach the program")
            return 0
    return 1 if run_all(who, sys.argv[2:]) else 0


if __name__ == "__main__":
    sys.exit(main())
