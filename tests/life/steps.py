"""steps.py: the steps of a random sequence, each with what it must do to the sandboxes of one world.

A step is [action, slot, argument] and means the same in every sequence: `slot` is where to look for
a sandbox, the next one that fits is taken, and a step that finds none does nothing. So a sequence
stays a sequence when steps are taken out of it. World.py has the invariant; `Run.check` compares
everything that exists with what the model says, `Run.check_keepers` only the keepers.
"""
import json
import os
import shutil
import signal
import subprocess
import time

import world
from world import (Sandbox, Violation, World, can_mount, command_lines, control_groups, eventually,
                   mounts, paths_below, processes_with, send_signal, start_time)

SLOTS = 4
OTHER_BOOT = "00000000-0000-4000-8000-000000000000"
DISK = 8 << 20  # bytes of the state directory

# How often each happens. A keeper that does not answer costs seconds, so it is asked rarely.
WEIGHTS = {
    "create": 110, "create_named": 80, "create_together": 10, "create_killed": 8, "execute": 150,
    "background": 60, "write": 110, "read": 90, "rename": 30, "rename_back": 40, "occupy": 20,
    "remove_runtime": 10, "remove_sockets": 10, "kill_keeper": 40, "kill_caller": 20,
    "stop_and_continue": 20, "stop_and_ask": 4, "stop_and_destroy": 4, "kill_gateway": 10,
    "stop_gateway_and_destroy": 4, "full_disk": 30, "expire": 20, "reboot": 3, "list": 60,
    "destroy": 80, "together": 40,
}


class Box:
    """A sandbox and what the model knows of it."""

    def __init__(self, sb, place):
        self.sb, self.id, self.name = sb, sb.id, sb.name
        self.place = place   # the path it was made with
        self.moved = False   # its directory is at place + ".moved"
        self.sure = True     # False: something it needs was killed, and a command may fail
        self.rebooted = False
        self.files = {}

    @property
    def directory(self):
        return self.place + ".moved" if self.moved else self.place


class Run:
    """One sequence in one world."""

    def __init__(self, backend, user):
        self.w = World(backend, user)
        self.boxes = [None] * SLOTS
        self.dead = {}   # id: words of processes that must not exist, until check has seen that
        self.known = set()
        self.count = 0
        if can_mount():
            owner = f",uid={world.USER},gid={world.USER}" if self.w.user else ""
            self.w.mount("-t", "tmpfs", "-o", f"size={DISK},mode=700{owner}", "none", self.w.state)

    def end(self):
        """Ends by force what may still run; those that check has seen to be gone are left out."""
        self.w.sandboxes = [sb for sb in self.w.sandboxes if sb.alive() or sb.id in self.dead]
        for ident in self.ids_in_state() - {sb.id for sb in self.w.sandboxes}:  # of killed creators
            if ident in self.dead or ident not in self.known:
                self.w.sandboxes.append(Sandbox(self.w, ident, None, "", 0))
        self.w.end()

    def step(self, action, slot, argument):
        getattr(self, action)(slot, argument)
        self.check_keepers()

    # ---- finding ----

    def alive(self):
        return [b for b in self.boxes if b and not b.rebooted]

    def find(self, slot, wanted=lambda b: not b.rebooted):
        for i in range(SLOTS):
            b = self.boxes[(slot + i) % SLOTS]
            if b and wanted(b):
                return b
        return None

    def empty(self, slot):
        return next((i % SLOTS for i in range(slot, slot + SLOTS) if not self.boxes[i % SLOTS]), None)

    def new_place(self):
        self.count += 1
        return self.w.mkdir(os.path.join(self.w.top, f"ws{self.count}"))

    def forget(self, b):
        """The sandbox has ended: all of it must go."""
        self.boxes[self.boxes.index(b)] = None
        self.dead[b.id] = [b.id, *b.sb.marks]
        for path in (b.place, b.directory):
            shutil.rmtree(path, ignore_errors=True)

    # ---- what must hold ----

    def check_keepers(self):
        for b in self.boxes:
            if b and not b.rebooted and not b.sb.alive():
                raise Violation(f"the keeper of {b.id} has ended")

    def expect_listed(self):
        listed = self.w.listed()
        wanted = {b.id: "other boot" if b.rebooted else "running" for b in self.boxes if b}
        if {k: v for k, v in listed.items() if k in wanted or k in self.known} != wanted:
            raise Violation(f"list says {listed}, expected {wanted}")
        return listed

    def left(self):
        """What exists of dead sandboxes, in words."""
        words = [w for ws in self.dead.values() for w in ws]
        lines = command_lines()
        found = [f"process {p} ({c})" for p, c in lines.items() if any(w in c for w in words)]
        marks = [m for b in self.alive() for m in b.sb.marks]
        found += [f"no process {m} of a living sandbox" for m in marks
                  if not any(m in c for c in lines.values())]
        found += [f"control group {g}" for g in control_groups(self.dead)]
        found += [f"mount {m}" for m in mounts() if any(i in m for i in self.dead)]
        names = os.path.join(self.w.state, "caisson", "names")
        held = {e: os.readlink(os.path.join(names, e)) for e in os.listdir(names)} if os.path.exists(names) else {}
        if held != {b.name: b.id for b in self.boxes if b and b.name}:
            found.append(f"names {held}")
        stays = tuple(os.path.join(self.w.state, "caisson", d) + os.sep for d in ("audit", "aside"))
        ids = [b.id for b in self.boxes if b]

        def of_dead(path, _entry):
            name = os.path.basename(path)
            return not path.startswith(stays) and name not in ids and \
                (os.path.basename(os.path.dirname(path)) == "sandboxes" or any(i in name for i in self.dead))
        paths = paths_below(self.w.state, of_dead) + paths_below(self.w.run, of_dead)
        return found + [f"{p} {os.listdir(p) if os.path.isdir(p) else ''}" for p in paths]

    def check(self):
        """The whole invariant."""
        self.expect_listed()
        found = []

        def gone():
            if found:  # an end that was under way during the last list
                self.w.call("list")
            try:
                found[:] = self.left()
            except OSError:
                found[:] = ["(changing)"]
            return not found
        if not eventually(gone):
            raise Violation("left behind: " + "; ".join(found[:6]))
        self.dead.clear()

    def expect_effect(self, b, a, path, what):
        """Success has made the file in the sandbox's directory; failure has made none."""
        made = os.path.exists(os.path.join(b.directory, path))
        if made != (a.status == 0):
            raise Violation(f"{what}: {a}; the file was {'' if made else 'not '}made")
        if b.moved and os.path.isdir(b.place) and os.listdir(b.place):
            raise Violation(f"{what} made {os.listdir(b.place)} in a directory of the user")
        if a.status != 0 and not a.err.strip():
            raise Violation(f"{what} fails without a message")
        if a.status != 0 and b.sure and not b.moved and not b.rebooted:
            raise Violation(f"{what}: {a}")

    # ---- making ----

    def options(self, argument):
        if self.w.backend != "jail":
            return []
        return ((["--allow", "host.invalid:443"] if argument % 5 == 0 else [])
                + (["--pids", "256"] if argument % 4 == 0 else []))

    def put(self, slot, sb, place):
        self.boxes[slot] = Box(sb, place)
        self.known.add(sb.id)

    def create(self, slot, argument, name=None):
        slot = self.empty(slot)
        if slot is None:
            return
        place = self.new_place()
        self.put(slot, self.w.create(*self.options(argument), name=name, workspace=place), place)

    def create_named(self, slot, argument):
        """A name of a living sandbox is refused, that of a dead one is free at once."""
        name = f"name{argument % 3}"
        holder = next((b for b in self.boxes if b and b.name == name), None)
        if not holder:
            self.create(slot, argument, name)
        elif not holder.rebooted:
            a = self.w.call("create", "--name", name, "--workspace", holder.directory)
            if a.status != 1 or "taken" not in a.err:
                raise Violation(f"create with a name that {holder.id} has: {a}")

    def create_together(self, slot, argument):
        """Of several callers that want one name, one gets it."""
        slot, name = self.empty(slot), f"name{argument % 3}"
        if slot is None or any(b and b.name == name for b in self.boxes):
            return
        place = self.new_place()
        answers = self.at_once([["create", "--name", name, "--workspace", place]] * 3)
        made = [a.out.strip() for a in answers if a.status == 0]
        if len(made) != 1:
            raise Violation(f"{len(made)} sandboxes have one name: {[str(a) for a in answers]}")
        self.put(slot, self.adopt(made[0], name, place), place)

    def adopt(self, ident, name, place):
        a = self.w.call("info", ident, "--json")
        if a.status != 0:
            raise Violation(f"info: {a}")
        sb = Sandbox(self.w, ident, name, place, json.loads(a.out)["keeper_pid"])
        self.w.sandboxes.append(sb)
        return sb

    def create_killed(self, _slot, argument):
        """A creator killed at some moment: what it made is whole, or nothing."""
        place = self.new_place()
        p = self.w.start("create", "--workspace", place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(argument % 50 / 10000)
        p.kill()
        p.wait()
        for ident in set(self.w.listed()) - self.known:
            a = self.w.call("destroy", ident)
            if a.status != 0:
                raise Violation(f"destroy after a killed create: {a}")
        for ident in self.ids_in_state() - self.known:
            self.known.add(ident)
            self.dead[ident] = [ident]

    def ids_in_state(self):
        top = os.path.join(self.w.state, "caisson")
        return {e.split(".")[0] for d in ("audit", "sandboxes") if os.path.isdir(os.path.join(top, d))
                for e in os.listdir(os.path.join(top, d)) if e.startswith(self.w.backend + "-")}

    # ---- using ----

    def execute(self, slot, argument):
        b = self.find(slot, lambda b: True)
        if b:
            name = f"e{self.count}.{argument}"
            self.count += 1
            self.expect_effect(b, self.w.call("exec", b.id, "--", "touch", name), name, "exec")

    def write(self, slot, argument):
        b = self.find(slot, lambda b: True)
        if not b:
            return
        name, text = f"w{argument % 4}", f"text {argument}\n"
        old = b.files.get(name)
        a = self.w.call("write", b.id, name, stdin=text.encode())
        if a.status == 0 or old is None:
            self.expect_effect(b, a, name, "write")
        if a.status == 0:
            b.files[name] = text
        self.expect_content(b, name)

    def expect_content(self, b, name):
        if name in b.files:
            with open(os.path.join(b.directory, name), encoding="utf-8") as f:
                if f.read() != b.files[name]:
                    raise Violation(f"{name} of {b.id} has another content")

    def read(self, slot, argument):
        b = self.find(slot, lambda b: bool(b.files))
        if not b:
            return
        name = sorted(b.files)[argument % len(b.files)]
        a = self.w.call("cat", b.id, name)
        if a.status == 0 and a.out != b.files[name]:
            raise Violation(f"read: {a.out!r} instead of {b.files[name]!r}")
        if a.status != 0 and not (b.moved or b.rebooted):
            raise Violation(f"read: {a}")

    def background(self, slot, argument):
        b = self.find(slot, lambda b: not b.rebooted and not b.moved and b.sure)
        if b:
            a = self.start_background(b, argument)
            if a.status != 0:
                raise Violation(f"exec -d: {a}")

    def start_background(self, b, argument):
        """A success adds its mark to the processes that must live. Some leave their session."""
        self.count += 1
        mark = f"86{argument % 1000:03}.{self.count:05}{os.getpid()}"
        words = ["sh", "-c", f"setsid sleep {mark} & exec sleep {mark}"] if argument % 3 == 0 else ["sleep", mark]
        a = self.w.call("exec", b.id, "-d", "--", *words)
        if a.status == 0:
            b.sb.marks.append(mark)
        elif processes_with([mark]):
            raise Violation(f"exec -d: {a}; the process runs")
        return a

    def list(self, _slot, _argument):
        self.check()

    def at_once(self, calls):
        """Runs all of them, released by one barrier."""
        gate, opener = os.pipe()
        running = [self.w.start(*words, through=["sh", "-c", 'read -r _; exec "$@" </dev/null', "sh"],
                                stdin=gate, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for words in calls]
        os.close(gate)
        os.close(opener)
        answers = []
        for words, p in zip(calls, running):
            try:
                out, err = p.communicate(timeout=max(world.WAIT, 60))
            except subprocess.TimeoutExpired:
                for other in running:
                    other.kill()
                raise Violation(f"{words[0]} did not end") from None
            answers.append(world.Answer(p.returncode, out.decode(), err.decode()))
        return answers

    def together(self, slot, argument):
        """Four callers at the same time."""
        b = self.find(slot, lambda b: not b.rebooted and not b.moved and b.sure)
        if not b:
            return
        kinds = [("list",), ("exec", b.id, "--", "true"), ("info", b.id), ("destroy", b.id)]
        calls = [kinds[argument // 4 ** i % 4] for i in range(4)]
        answers = self.at_once(calls)
        ended = any(c[0] == "destroy" for c in calls)
        for words, a in zip(calls, answers):
            allowed = (0,) if words[0] == "list" or not ended else (0, 125 if words[0] == "exec" else 1)
            if a.status not in allowed:
                raise Violation(f"{[c[0] for c in calls]} at once: {words[0]}: {a}")
        if ended:
            if not any(a.status == 0 for c, a in zip(calls, answers) if c[0] == "destroy"):
                raise Violation(f"no destroy of several succeeds: {[str(a) for a in answers]}")
            self.forget(b)

    def destroy(self, slot, _argument):
        b = self.find(slot, lambda b: True)
        if b:
            a = self.w.call("destroy", b.name or b.id)
            if a.status != 0:
                raise Violation(f"destroy: {a}")
            self.forget(b)

    # ---- the world changes ----

    def rename(self, slot, argument):
        """The workspace moves; half of the time another directory is in its place at once."""
        b = self.find(slot, lambda b: not b.moved)
        if b:
            os.rename(b.place, b.place + ".moved")
            b.moved = True
            if argument % 2:
                self.w.mkdir(b.place)

    def occupy(self, slot, _argument):
        b = self.find(slot, lambda b: b.moved and not os.path.exists(b.place))
        if b:
            self.w.mkdir(b.place)

    def rename_back(self, slot, _argument):
        b = self.find(slot, lambda b: b.moved)
        if b:
            if os.path.exists(b.place):
                os.rmdir(b.place)
            os.rename(b.place + ".moved", b.place)
            b.moved = False

    def remove_runtime(self, _slot, argument):
        """The directory itself, or what is in it."""
        shutil.rmtree(self.w.run, ignore_errors=True)
        if argument % 2 and not os.path.exists(self.w.run):
            self.w.mkdir(self.w.run)

    def remove_sockets(self, _slot, _argument):
        for path in self.w.sockets():
            os.unlink(path)

    def full_disk(self, slot, argument):
        """What fails on a full disk has had no effect; what succeeds has had all of it."""
        if not can_mount():
            return
        filler = os.path.join(self.w.state, "filler")
        with open(filler, "wb") as f:
            free = os.statvfs(self.w.state)
            os.posix_fallocate(f.fileno(), 0, free.f_bavail * free.f_frsize)
            try:
                self.on_full_disk(slot, argument)
            finally:
                os.unlink(filler)
        self.check()

    def on_full_disk(self, slot, argument):
        b = self.find(slot, lambda b: not b.rebooted and not b.moved and b.sure)
        free, action = self.empty(slot), argument % 5
        if action == 0 and free is not None:
            place = self.new_place()
            a = self.w.call("create", "--workspace", place)
            if a.status == 0:
                self.put(free, self.adopt(a.out.strip(), None, place), place)
        elif b and action == 1:
            b.sure = False  # a failure is allowed here
            for i in range(16 if argument % 2 else 1):  # a page of a log has room for some lines
                self.execute(self.boxes.index(b), i)
            b.sure = True
        elif b and action == 2:
            self.start_background(b, argument)
        elif b and action == 3:
            b.sure = False
            self.write(self.boxes.index(b), argument)
            b.sure = True
        elif b and self.w.call("destroy", b.id).status == 0:
            self.forget(b)

    # ---- ends ----

    def died(self, b, how):
        if not eventually(lambda: not b.sb.alive()):
            raise Violation(f"{how} did not end the keeper of {b.id}")
        self.forget(b)

    def kill_keeper(self, slot, argument):
        b = self.find(slot)
        if b:
            if argument % 3 == 0:
                b.sb.signal(signal.SIGSTOP)
            b.sb.signal(signal.SIGKILL)
            self.died(b, "SIGKILL")

    def expire(self, slot, _argument):
        b = self.find(slot, lambda b: not b.rebooted and not b.moved)
        if b:
            a = self.w.call("extend", b.id, "10ms")
            if a.status != 0:
                raise Violation(f"extend: {a}")
            self.died(b, "its lifetime")

    def reboot(self, _slot, _argument):
        """Every process ends, and the records are of an earlier boot."""
        alive = self.alive()
        for b in alive:
            b.sb.edit_keeper_file(boot=OTHER_BOOT)
        words = [w for b in alive for w in (b.id, *b.sb.marks)]
        while words and (found := processes_with(words)):
            for pid in found:
                send_signal(pid, signal.SIGKILL)
        for b in alive:
            if not eventually(lambda b=b: not b.sb.alive()):
                raise Violation(f"SIGKILL did not end the keeper of {b.id}")
            b.rebooted = True
            b.sb.marks = []

    def kill_caller(self, slot, argument):
        """The command of a killed caller ends, also when the caller was stopped or not read from."""
        b = self.find(slot, lambda b: not b.rebooted and not b.moved and b.sure)
        if not b:
            return
        self.count += 1
        mark = f"85{argument % 1000:03}.{self.count:05}{os.getpid()}"
        words = ["yes", mark] if argument % 2 else ["sleep", mark]
        p = self.w.start("exec", b.id, "--", *words, stdout=subprocess.PIPE)
        inside = eventually(lambda: [c for c in processes_with([mark]).values() if c == " ".join(words)])
        if argument % 3 == 0:
            p.send_signal(signal.SIGSTOP)
        p.kill()
        p.wait()
        p.stdout.close()
        if not inside:
            raise Violation("a command did not start")
        if not eventually(lambda: not processes_with([mark])):
            raise Violation("a command outlives its killed caller")

    def stop_and_continue(self, slot, argument):
        """A caller during a pause of the keeper waits or is told; afterwards all is as before."""
        b = self.find(slot, lambda b: not b.rebooted and not b.moved and b.sure)
        if not b:
            return
        name = f"s{self.count}.{argument}"
        self.count += 1
        b.sb.signal(signal.SIGSTOP)
        p = self.w.start("exec", b.id, "--", "touch", name, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(argument % 4 / 1000)
        b.sb.signal(signal.SIGCONT)
        out, err = p.communicate()
        a = world.Answer(p.returncode, out.decode(), err.decode())
        b.sure = "not answering" not in a.err
        self.expect_effect(b, a, name, "exec")
        b.sure = True
        self.execute(self.boxes.index(b), argument)

    def stop_and_ask(self, slot, _argument):
        """Questions to a keeper that does not answer fail and end nothing."""
        b = self.find(slot, lambda b: not b.rebooted and not b.moved and b.sure)
        if not b:
            return
        b.sb.signal(signal.SIGSTOP)
        try:
            listed, asked = self.at_once([["list", "--json"], ["info", b.id]])
        finally:
            b.sb.signal(signal.SIGCONT)
        state = {e["id"]: e["state"] for e in json.loads(listed.out)}.get(b.id)
        if state != "not answering":
            raise Violation(f"a stopped keeper is listed as {state}")
        if asked.status != 1 or "not answering" not in asked.err:
            raise Violation(f"info of a stopped keeper: {asked}")

    def stop_and_destroy(self, slot, argument):
        b = self.find(slot)
        if b:
            b.sb.signal(signal.SIGSTOP)
            self.destroy(self.boxes.index(b), argument)

    def gateway_of(self, b):
        return [p for p, c in processes_with([b.id]).items() if c.startswith("caisson-gateway")]

    def kill_gateway(self, slot, _argument):
        b = self.find(slot, lambda b: not b.rebooted and b.sure and self.gateway_of(b))
        if b:
            for pid in self.gateway_of(b):
                send_signal(pid, signal.SIGKILL)
                if not eventually(lambda p=pid: start_time(p) is None):
                    raise Violation("SIGKILL did not end a gateway")
            b.sure = False

    def stop_gateway_and_destroy(self, slot, argument):
        b = self.find(slot, lambda b: not b.rebooted and self.gateway_of(b))
        if b:
            for pid in self.gateway_of(b):
                send_signal(pid, signal.SIGSTOP)
            self.destroy(self.boxes.index(b), argument)
