"""world.py: directories of their own for sandboxes, and what exists of a sandbox, seen from outside.

A World has its own HOME, state, runtime and workspace directories below one temporary directory.
It runs the program as the caller or, for a root caller, as an ordinary user. A Sandbox of it is
watched without caisson's help: through /proc, the directories, the mounts and the control groups.

The invariant that all tests of this directory check: a living keeper is listed and can be
destroyed; a dead one leaves no process, mount, control group, socket, record or name.

A root caller works in a mount namespace of its own (enter_mount_namespace), so that no test can
unmount, cover or fill anything of the machine.
"""
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

CAISSON = os.environ.get("CAISSON", "")
USER = 65534
ROOT = os.geteuid() == 0
# A machine that stands still must not fail a test. Only what never happens takes this long.
WAIT = float(os.environ.get("LIFE_WAIT", "60"))
PRIVATE = "CSN_LIFE_MOUNT_NAMESPACE"  # in the environment of a program that is in its own one


class Violation(Exception):
    """A promise was broken; the text says how."""


class Answer:
    """What one call of the program said."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __str__(self):
        return f"status {self.status}: {self.err.strip() or self.out.strip()}"


def enter_mount_namespace():
    """Starts this program again in a private mount namespace. Without root nothing can be mounted."""
    if not ROOT or PRIVATE in os.environ:
        return
    namespace = ["unshare", "-m", "--propagation", "private"]
    if subprocess.run([*namespace, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        return
    os.environ[PRIVATE] = "1"
    os.execvp(namespace[0], [*namespace, sys.executable, *sys.argv])


def can_mount():
    return ROOT and PRIVATE in os.environ


def eventually(probe, seconds=None):
    """Calls probe until it returns something true; returns its last value."""
    until = time.monotonic() + (WAIT if seconds is None else seconds)
    pause = 0.002
    while True:
        value = probe()
        if value or time.monotonic() > until:
            return value
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


# ---- processes ----

def start_time(pid):
    """When the process started, in ticks since boot; None when it has ended. A zombie has."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def state_of(pid):
    """The letter of /proc/PID/stat, or None."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0]
    except OSError:
        return None


def command_lines():
    """{pid: arguments} of all processes."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            fd = os.open(f"/proc/{entry}/cmdline", os.O_RDONLY)
        except OSError:
            continue
        try:
            line = os.read(fd, 8192)
        except OSError:  # it ended meanwhile
            line = b""
        os.close(fd)
        if line:
            found[int(entry)] = line.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def processes_with(words):
    """{pid: arguments} of the processes that have one of the words in theirs."""
    return {pid: line for pid, line in command_lines().items() if any(w in line for w in words)}


def send_signal(pid, signo):
    try:
        os.kill(pid, signo)
    except ProcessLookupError:
        pass


# ---- what the kernel and the file system hold ----

def control_groups(words, top="/sys/fs/cgroup", depth=6):
    """Directories of control groups with one of the words in their name."""
    found = []
    try:
        entries = [e for e in os.scandir(top) if e.is_dir(follow_symlinks=False)]
    except OSError:
        return found
    for e in entries:
        if any(w in e.name for w in words):
            found.append(e.path)
        elif depth > 1:
            found += control_groups(words, e.path, depth - 1)
    return found


def mounts():
    """Lines of the mount table of this program."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
        return f.read().splitlines()


def paths_below(top, wanted):
    """Paths below top for which wanted(path, entry) is true."""
    found, todo = [], [top]
    while todo:
        try:
            entries = list(os.scandir(todo.pop()))
        except OSError:
            continue
        for e in entries:
            if wanted(e.path, e):
                found.append(e.path)
            if e.is_dir(follow_symlinks=False):
                todo.append(e.path)
    return sorted(found)


def is_socket(_path, entry):
    try:
        return stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return False


class Sandbox:
    """A detached sandbox as the test knows it."""

    def __init__(self, world, ident, name, workspace, keeper):
        self.world, self.id, self.name, self.keeper = world, ident, name, keeper
        self.workspace = workspace  # where its files are now
        self.started = start_time(keeper)
        self.marks = []  # words in the arguments of its background processes

    def __str__(self):
        return self.id

    def alive(self):
        return self.started is not None and start_time(self.keeper) == self.started

    def signal(self, signo):
        if self.alive():
            send_signal(self.keeper, signo)

    def record(self, *names):
        return os.path.join(self.world.state, "caisson", "sandboxes", self.id, *names)

    def processes(self):
        """Keeper, gateway, sweeper, background commands, and callers that name it."""
        found = processes_with([self.id, *self.marks])
        if self.alive():
            found.setdefault(self.keeper, "keeper")
        return found

    def kill_all(self):
        """SIGKILL for every process, as a power failure would."""
        while True:
            found = self.processes()
            for pid in found:
                send_signal(pid, signal.SIGKILL)
            if not found:
                return
            time.sleep(0.005)

    def edit_keeper_file(self, **values):
        """Replaces values of the record's file `keeper`, and nothing else in it."""
        path = self.record("keeper")
        if not os.path.exists(path):
            raise Violation("the record has no file keeper")
        with open(path, "r+", encoding="utf-8") as f:
            text = f.read()
            for key, value in values.items():
                text, n = re.subn(rf'("{key}"\s*:\s*)("[^"]*"|[-0-9]+)',
                                  lambda m, v=value: m.group(1) + json.dumps(v), text)
                if n != 1:
                    raise Violation(f"the file keeper has no {key}: {text.strip()}")
            f.seek(0)
            f.truncate()
            f.write(text)

    def files_left(self):
        """Paths of the state and runtime directories with its id, and names that lead to it."""
        names = os.path.join(self.world.state, "caisson", "names")
        stays = tuple(os.path.join(self.world.state, "caisson", d) + os.sep
                      for d in ("audit", "aside"))  # meant to outlive a sandbox

        def wanted(path, entry):
            if path.startswith(stays):
                return False
            if os.path.dirname(path) == names:
                return entry.is_symlink() and os.readlink(path) == self.id
            return self.id in path
        try:
            return paths_below(self.world.state, wanted) + paths_below(self.world.run, wanted)
        except OSError:  # something went away meanwhile
            return ["(changing)"]

    def left(self):
        """Everything of it that exists, in words."""
        return ([f"process {p} ({c})" for p, c in self.processes().items()] + self.files_left()
                + [f"control group {g}" for g in control_groups([self.id])]
                + [f"mount {m}" for m in mounts() if self.id in m])

    def expect_nothing_left(self):
        """The next command of the user, a list, has removed everything, or it ends by itself."""
        self.world.call("list")
        left = []

        def gone():
            left[:] = self.left()
            return not left
        if not eventually(gone):
            raise Violation("left behind: " + "; ".join(left[:6]))


class World:
    """Directories for one test; `user` runs the program as an ordinary user if the caller is root."""

    count = 0

    def __init__(self, backend, user=False):
        self.backend, self.user = backend, user and ROOT
        self.top = tempfile.mkdtemp(prefix="csn-life.", dir="/tmp")
        os.chmod(self.top, 0o755)
        self.state, self.run, self.home, self.config, self.workspace = (
            os.path.join(self.top, d) for d in ("state", "run", "home", "config", "ws"))
        for path in (self.state, self.run, self.home, self.config, self.workspace):
            self.mkdir(path)
        self.drop = (["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", "--"]
                     if self.user else [])
        self.env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8",
                    "HOME": self.home, "XDG_STATE_HOME": self.state, "XDG_RUNTIME_DIR": self.run,
                    "XDG_CONFIG_HOME": self.config, "CAISSON_BACKEND": backend}
        self.env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        self.sandboxes = []
        self.mounted = []

    # -- its directories

    def mkdir(self, path):
        os.mkdir(path, 0o700)
        self.give(path)
        return path

    def give(self, path):
        """Makes a path belong to the user that runs the program."""
        if self.user:
            os.chown(path, USER, USER, follow_symlinks=False)

    def put(self, path, text):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        self.give(path)

    def mount(self, *args):
        """mount ARGS..., undone by end(); the last argument is the place."""
        if not can_mount():
            raise Violation("a test without a private mount namespace tried to mount")
        subprocess.run(["mount", *args], check=True, capture_output=True)
        self.mounted.append(args[-1])

    def unmount(self, path):
        subprocess.run(["umount", "-l", path], check=True, capture_output=True)
        self.mounted.remove(path)

    def sockets(self):
        return paths_below(self.state, is_socket) + paths_below(self.run, is_socket)

    def files_named(self, name):
        """Where below this world a file of this name is."""
        return paths_below(self.top, lambda path, _e: os.path.basename(path) == name)

    def unique(self, prefix):
        World.count += 1
        return f"{prefix}{os.getpid()}x{World.count}"

    # -- the program

    def start(self, *args, through=(), **popen):
        """Starts the program, in the namespaces that the words of `through` make."""
        return subprocess.Popen([*through, *self.drop, CAISSON, *args], env=self.env, cwd=self.top,
                                **popen)

    def call(self, *args, stdin=b"", through=()):
        """Runs the program to its end. One that does not end in a minute hangs."""
        p = self.start(*args, through=through, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
        try:
            out, err = p.communicate(stdin, timeout=max(WAIT, 60))
        except subprocess.TimeoutExpired:
            p.kill()
            p.communicate()
            raise Violation(f"{args[0]} did not end") from None
        return Answer(p.returncode, out.decode(errors="replace"), err.decode(errors="replace"))

    def create(self, *options, name=None, workspace=None):
        """A new sandbox; raises Violation when it cannot be made."""
        words = ["create", "--workspace", workspace or self.workspace, *options]
        a = self.call(*words, *(["--name", name] if name else []))
        if a.status != 0:
            raise Violation(f"create: {a}")
        ident = a.out.strip()
        info = self.call("info", ident, "--json")
        if info.status != 0:
            raise Violation(f"info of a new sandbox: {info}")
        sb = Sandbox(self, ident, name, os.path.realpath(workspace or self.workspace),
                     json.loads(info.out)["keeper_pid"])
        self.sandboxes.append(sb)
        return sb

    def background(self, sb):
        """Starts a process in it that leaves its session, and one that does not."""
        mark = f"86400.{World.count:06}{os.getpid()}"
        World.count += 1
        a = self.call("exec", sb.id, "-d", "-c", f"setsid sleep {mark} & exec sleep {mark}")
        if a.status != 0:
            raise Violation(f"exec -d: {a}")
        sb.marks.append(mark)
        if not eventually(lambda: self.background_lives(sb)):
            raise Violation("a background process did not start")
        return mark

    def background_lives(self, sb):
        """Does every background process of the sandbox run, both halves of each?"""
        lines = [c for c in processes_with(sb.marks).values() if c.startswith("sleep ")]
        return all(sum(m in c for c in lines) == 2 for m in sb.marks)

    def listed(self, through=()):
        """{id: state} of the program's list."""
        a = self.call("list", "--json", through=through)
        if a.status != 0:
            raise Violation(f"list: {a}")
        return {e["id"]: e["state"] for e in json.loads(a.out)}

    def expect_usable(self, sb):
        """A living sandbox is listed, does what it did before, and has its processes."""
        state = self.listed().get(sb.id)
        if state != "running":
            raise Violation(f"a living keeper is listed as {state}")
        if not self.background_lives(sb):
            raise Violation("a background process of a living sandbox has ended")

    def expect_destroyable(self, sb):
        a = self.call("destroy", sb.id)
        if a.status != 0:
            raise Violation(f"destroy: {a}")
        sb.expect_nothing_left()

    # -- its end

    def end(self):
        """Ends everything by force: what is left now is not judged any more."""
        for sb in self.sandboxes:
            sb.kill_all()
        for path in control_groups([sb.id for sb in self.sandboxes]):
            try:
                os.rmdir(path)
            except OSError:
                pass
        for path in reversed(self.mounted):
            subprocess.run(["umount", "-l", path], check=False, capture_output=True)
        shutil.rmtree(self.top, ignore_errors=True)


def in_mount_namespace(world):
    """Words that run a command where the runtime directory is another, empty one."""
    options = f"mode=700,uid={USER if world.user else 0}"
    return ["unshare", "-m", "--propagation", "private", "sh", "-c",
            f'mount -t tmpfs -o {options} none "$0" && exec "$@"', world.run]


def in_pid_namespace(_world):
    """Words that run a command where no process of this namespace is visible."""
    return ["unshare", "-p", "-f", "--mount-proc"]
