"""uncover.py DIR: ways to what a mount covers, as root of a nested user and mount namespace.

DIR is the workspace: `private` is denied, `.git/hooks` is read-only. Prints NAME ESCAPED for each way
that reads private/key or changes a hook, and NAME held for the others.
"""
import ctypes
import os
import subprocess
import sys

WS = sys.argv[1]
LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
MS_REMOUNT, MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE = 32, 4096, 8192, 16384, 1 << 18
OPEN_TREE, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT, MOUNT_SETATTR, OPEN_TREE_ATTR = 428, 429, 430, 431, 432, 442, 467
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000


def mount(source, to, kind=None, flags=0, data=None):
    args = [x.encode() if x else None for x in (source, to, kind)]
    return LIBC.mount(*args, flags, data.encode() if data else None) == 0


def call(number, *args):
    args = [x.encode() if isinstance(x, str) else x for x in args]
    return LIBC.syscall(number, *[ctypes.c_long(x) if isinstance(x, int) else x for x in args])


def reads(path):
    try:
        with open(path, encoding="utf-8") as f:
            return "secret" in f.read()
    except OSError:
        return False


def plants(path):
    try:
        with open(path, "w", encoding="utf-8") as f:
            f.write("evil")
        return True
    except OSError:
        return False


def both(root):
    return reads(root + "/private/key") or plants(root + "/.git/hooks/evil")


def place():
    os.makedirs("/tmp/place", exist_ok=True)
    return "/tmp/place"


def umount(flags):
    return lambda: (LIBC.umount2((WS + "/private").encode(), flags), LIBC.umount2((WS + "/.git/hooks").encode(), flags),
                    both(WS))[2]


def bind(flags):
    return lambda: mount(WS, place(), None, MS_BIND | flags) and both("/tmp/place")


def tree(flags):
    def attempt():
        fd = call(OPEN_TREE, AT_FDCWD, WS, flags)
        if fd < 0:
            return False
        if both(f"/proc/self/fd/{fd}"):
            return True
        if call(MOVE_MOUNT, fd, "", AT_FDCWD, place(), 4) == 0 and both("/tmp/place"):
            return True
        return LIBC.setns(fd, CLONE_NEWNS) == 0 and (both(WS) or both("/"))

    return attempt


def tree_attr():
    fd = call(OPEN_TREE_ATTR, AT_FDCWD, WS, 1, bytes(32), 32)
    return fd >= 0 and both(f"/proc/self/fd/{fd}")


def writable():
    mount(None, WS + "/.git/hooks", None, MS_REMOUNT | MS_BIND)
    attr = (0).to_bytes(8, "little") + (1).to_bytes(8, "little") + bytes(16)  # clear MOUNT_ATTR_RDONLY
    call(MOUNT_SETATTR, AT_FDCWD, WS, AT_RECURSIVE, attr, 32)
    return both(WS)


def move():
    return mount(WS + "/private", place(), None, MS_MOVE) and both(WS)


def beneath():
    fd = call(OPEN_TREE, AT_FDCWD, "/tmp", 1)
    return call(MOVE_MOUNT, fd, "", AT_FDCWD, WS + "/private", 4 | 0x200) == 0


def overlay():
    os.makedirs("/tmp/o/u", exist_ok=True)
    os.makedirs("/tmp/o/w", exist_ok=True)
    data = f"lowerdir={WS},upperdir=/tmp/o/u,workdir=/tmp/o/w,userxattr"
    return mount("overlay", place(), "overlay", 0, data) and reads("/tmp/place/private/key")


def new_fs(flags):
    def attempt():
        fs = call(FSOPEN, "tmpfs", 0)
        call(FSCONFIG, fs, 6, None, None, 0)
        return call(FSMOUNT, fs, flags, 0) >= 0

    return attempt


def again():
    return subprocess.run(["unshare", "-Urm", sys.executable, __file__, WS, "umount", "bind-rec", "remount"],
                          stdout=subprocess.PIPE, check=False).stdout.count(b"ESCAPED") > 0


def keeper(name):
    return lambda: os.listdir(f"/proc/1/{name}") and True


def enter():
    return any(LIBC.setns(os.open(f"/proc/1/ns/{kind}", os.O_RDONLY), 0) == 0 for kind in ("mnt", "user"))


def whole_proc():
    LIBC.umount2(b"/run/.nested", 2)
    return os.path.exists("/run/.nested/proc/self")


WAYS = {
    "umount": umount(0), "umount-lazy": umount(2), "umount-expire": umount(4),
    "bind": bind(0), "bind-rec": bind(MS_REC), "tree-path": tree(0), "tree-clone": tree(1),
    "tree-namespace": tree(2), "tree-namespace-rec": tree(2 | AT_RECURSIVE), "tree-both": tree(3),
    "tree-rec": tree(1 | AT_RECURSIVE), "tree-attr": tree_attr, "remount": writable, "move": move,
    "beneath": beneath, "overlay": overlay, "fsmount-namespace": new_fs(2), "another-namespace": again,
    "keeper-root": keeper("root"), "keeper-descriptors": keeper("fd"), "keeper-namespaces": enter,
    "whole-proc": whole_proc,
}
mount(None, "/", None, MS_REC | MS_PRIVATE)
for name in sys.argv[2:] or WAYS:
    if os.fork() == 0:
        LIBC.unshare(CLONE_NEWNS)  # each starts from the same mounts
        try:
            print(name, "ESCAPED" if WAYS[name]() else "held")
        except OSError:
            print(name, "held")
        sys.stdout.flush()
        os._exit(0)
    os.wait()
