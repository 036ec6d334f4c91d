#!/usr/bin/python3
"""probe.py WORDS: one attempt on the kernel, told in one line: `ESCAPED what` or `held ERRNO`.

    socket FAMILY TYPE PROTOCOL      the socket opens
    alg                              an AEAD of AF_ALG is bound, as a copy without write permission needs it
    espintcp | udpencap              a TCP or UDP socket becomes one that carries ESP
    keyctl                           a session keyring is given to the parent
    uncover PATH COVERED             COVERED is read under the mount that hides it at PATH
    nsfs INODE...                    a descriptor of a namespace with one of these numbers is had
    remount PATH                     a read-only mount becomes writable
    sigio NUMBER SIGNAL              a signal is sent by way of a descriptor: to a process, -group
    sigqueue PID SIGNAL              a signal without a sender is queued
    ptrace PID...                    one of them is traced
    openw PATH...                    one of them opens for writing
    uring                            a ring is made
"""
import ctypes
import errno
import fcntl
import os
import socket
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
SYS = {"keyctl": 250, "open_tree": 428, "mount_setattr": 442, "io_uring_setup": 425, "rt_sigqueueinfo": 129}
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MS_REMOUNT, MS_BIND, MS_RDONLY, MNT_DETACH = 32, 4096, 1, 2


def call(name, *args):
    """A system call by number; OSError like the functions of os."""
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = libc.syscall(ctypes.c_long(SYS[name]), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def try_socket(family, kind, protocol):
    socket.socket(int(family), int(kind), int(protocol))
    return "the socket opens"


def try_alg():
    s = socket.socket(38, socket.SOCK_SEQPACKET, 0)
    s.bind(("aead", "gcm(aes)"))
    return "an AEAD is bound"


def try_espintcp():
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    s = socket.create_connection(server.getsockname())
    s.setsockopt(socket.IPPROTO_TCP, 31, b"espintcp")
    return "ESP in TCP"


def try_udpencap():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_UDP, 100, 2)  # UDP_ENCAP, UDP_ENCAP_ESPINUDP
    socket.socket(16, socket.SOCK_RAW, 6)  # NETLINK_XFRM
    return "ESP in UDP, and its states can be set"


def try_keyctl():
    call("keyctl", 1, 0)  # JOIN_SESSION_KEYRING
    try:
        call("keyctl", 18)  # SESSION_TO_PARENT
    except OSError as e:
        if e.errno in (errno.EPERM, errno.ENOSYS):
            return "a keyring is joined"
    return "a keyring is given to the parent"


def private_mounts():
    """A mount namespace of our own, with a user namespace if that is needed."""
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWNS) == 0:
        return
    checked(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS))
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open("/proc/self/" + name, "w", encoding="ascii") as f:
            f.write(text)


def try_uncover(path, covered):
    last = None

    def ways(inner):
        yield lambda: open(covered, encoding="utf-8").read()
        if not inner and os.getuid() == 0:
            return  # root on the host changes no mounts there
        for flags in (1, 2, 3, 1 | AT_RECURSIVE, 2 | AT_RECURSIVE, 3 | AT_RECURSIVE):  # CLONE, NAMESPACE
            def clone(flags=flags):
                parent = os.path.dirname(path)
                fd = call("open_tree", AT_FDCWD, os.fsencode(parent), flags)
                return os.read(os.open(os.path.relpath(covered, parent), os.O_RDONLY, dir_fd=fd), 100).decode()
            yield clone

        def umount():
            checked(libc.umount2(os.fsencode(path), MNT_DETACH))
            return open(covered, encoding="utf-8").read()
        yield umount

        def bind():
            checked(libc.mount(os.fsencode(os.path.dirname(path)), b"/mnt", None, MS_BIND, None))
            return open(os.path.join("/mnt", os.path.relpath(covered, os.path.dirname(path))), encoding="utf-8").read()
        yield bind

    for inner in (False, True):
        try:
            if inner:
                private_mounts()
        except OSError as e:
            last = e
            break
        for way in ways(inner):
            try:
                return way()
            except OSError as e:
                last = e
    raise last


def try_nsfs(*inodes):
    wanted = {int(i) for i in inodes}
    found = None
    for name in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"):
        try:
            fd = os.open("/proc/self/ns/" + name, os.O_RDONLY)
        except OSError as e:
            found = e
            continue
        # NS_GET_USERNS, NS_GET_PARENT, NS_MNT_GET_NEXT, NS_MNT_GET_PREV
        for request in (0xb701, 0xb702, 0x8010b70b, 0x8010b70c):
            try:
                got = fcntl.ioctl(fd, request, bytearray(64)) if request > 0xffff else fcntl.ioctl(fd, request)
                if isinstance(got, int) and os.fstat(got).st_ino in wanted:
                    return f"{name} {request:#x} gives {os.fstat(got).st_ino}"
            except OSError as e:
                found = e
    raise found or OSError(errno.EPERM, "")


def try_remount(path):
    last = None
    for inner in (False, True):
        try:
            if inner:
                private_mounts()
            elif os.getuid() == 0:
                with open(os.path.join(path, "marker"), "w", encoding="ascii"):
                    return "written"
            attr = struct.pack("QQQQ", 0, 1, 0, 0)  # clear MOUNT_ATTR_RDONLY
            for way in (lambda: checked(libc.mount(None, os.fsencode(path), None, MS_REMOUNT | MS_BIND, None)),
                        lambda: checked(libc.mount(None, os.fsencode(path), None, MS_REMOUNT, None)),
                        lambda: call("mount_setattr", AT_FDCWD, os.fsencode(path), AT_RECURSIVE, attr, len(attr))):
                try:
                    way()
                    break
                except OSError as e:
                    last = e
            with open(os.path.join(path, "marker"), "w", encoding="ascii"):
                return "written"
        except OSError as e:
            last = e
    raise last


def try_sigio(number, signal):
    if int(number) == 0:
        number = -os.getpgrp()
    r, w = os.pipe()
    s, t = socket.socketpair()
    for fd in (r, s.fileno()):
        fcntl.fcntl(fd, fcntl.F_SETOWN, int(number))
        fcntl.fcntl(fd, 10, int(signal))  # F_SETSIG
        fcntl.fcntl(fd, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(w, b"x")
    t.send(b"x")
    return "sent"


def try_sigqueue(pid, signal):
    # a code below zero may carry any sender: none, as if it came from outside
    info = struct.pack("iii", int(signal), 0, -1).ljust(128, b"\0")
    call("rt_sigqueueinfo", int(pid), int(signal), info)
    return "sent"


def try_ptrace(*pids):
    last = OSError(errno.ESRCH, "")
    for pid in pids:
        if libc.ptrace(16, int(pid), None, None) == 0:  # PTRACE_ATTACH
            return f"{pid} is traced"
        last = OSError(ctypes.get_errno(), "")
        try:
            os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
            return f"the memory of {pid} opens"
        except OSError:
            pass
    raise last


def try_openw(*paths):
    last = OSError(errno.ENOENT, "")
    for path in paths:
        try:
            os.close(os.open(path, os.O_WRONLY))
            return path
        except OSError as e:
            last = e
    raise last


def try_uring():
    call("io_uring_setup", 1, ctypes.create_string_buffer(256))
    return "a ring is made"


def main():
    try:
        print("ESCAPED", globals()["try_" + sys.argv[1]](*sys.argv[2:]))
    except OSError as e:
        print("held", errno.errorcode.get(e.errno, e))


main()
