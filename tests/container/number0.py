"""number0.py: what uid 0 may do to files and processes without any capability.

    number0.py DIR PID [NAME...]    tries each of the attempts, or those named

The kernel asks only for the owner, and uid 0 owns most of a system. DIR has what the test made
outside of the sandbox: the file `secret`, the socket `s`. PID is a process outside. Each attempt
changes a thing to what it already is, so that a success does no harm. Prints one line for each:
NAME held ERRNO, NAME ESCAPED or NAME absent.
"""
import ctypes
import errno
import fcntl
import os
import resource
import signal
import socket
import sys

OUT, PID = sys.argv[1], int(sys.argv[2])
LIBC = ctypes.CDLL(None, use_errno=True)

def rewrite(path):
    def attempt():
        with open(path, "rb") as f:
            content = f.read(65536)
        fd = os.open(path, os.O_WRONLY)
        os.write(fd, content)
        os.close(fd)

    return attempt

def for_writing(path):
    return lambda: os.close(os.open(path, os.O_WRONLY))

def for_reading(path):
    return lambda: os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))

def same_mode(path):
    return lambda: os.chmod(path, os.stat(path).st_mode & 0o777)

def same_mode_by_fd(path):
    return lambda: os.fchmod(os.open(path, os.O_RDONLY), os.stat(path).st_mode & 0o777)

def same_mode_by_path_fd(path):
    def attempt():
        fd = os.open(path, os.O_PATH)
        mode = os.stat(path).st_mode & 0o777
        if LIBC.syscall(452, fd, b"", mode, 0x1000) < 0 and ctypes.get_errno() == errno.ENOSYS:
            os.chmod(f"/proc/self/fd/{fd}", mode)
        elif ctypes.get_errno():
            raise OSError(ctypes.get_errno(), "fchmodat2")

    return attempt

def same_times(path):
    st = os.stat(path)
    return lambda: os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))

def lease(path):
    return lambda: fcntl.fcntl(os.open(path, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)

def get_flags(path):
    def attempt():
        fd = os.open(path, os.O_RDONLY)
        flags = fcntl.ioctl(fd, 0x80086601, bytes(8))
        fcntl.ioctl(fd, 0x40086602, flags)

    return attempt

def connect(path):
    return lambda: socket.socket(socket.AF_UNIX).connect(path)

def trace(pid):
    def attempt():
        ctypes.set_errno(0)
        if LIBC.ptrace(0x4206, pid, 0, 0) < 0:  # PTRACE_SEIZE
            raise OSError(ctypes.get_errno(), "ptrace")

    return attempt

def limits(pid):
    return lambda: resource.prlimit(pid, resource.RLIMIT_CORE, resource.prlimit(0, resource.RLIMIT_CORE))

SECRET = OUT + "/secret"
ATTEMPTS = {
    "core_pattern": rewrite("/proc/sys/kernel/core_pattern"),
    "modprobe": rewrite("/proc/sys/kernel/modprobe"),
    "overcommit": rewrite("/proc/sys/vm/overcommit_memory"),
    "sysrq": for_writing("/proc/sysrq-trigger"),
    "proc-mode": same_mode("/proc/uptime"),
    "proc-sys-mode": same_mode("/proc/loadavg"),
    "slabinfo": for_reading("/proc/slabinfo"),
    "kmsg": for_reading("/proc/kmsg"),
    "kcore": for_reading("/proc/kcore"),
    "oom-score": rewrite(f"/proc/{PID}/oom_score_adj"),
    "sys-file": for_writing("/sys/kernel/mm/transparent_hugepage/enabled"),
    "sys-printk": for_writing("/sys/module/printk/parameters/time"),
    "dev-mode": same_mode("/dev/null"),
    "dev-mode-by-fd": same_mode_by_fd("/dev/zero"),
    "dev-times": same_times("/dev/full"),
    "dev-mem": for_reading("/dev/mem"),
    "dev-kmsg": for_writing("/dev/kmsg"),
    "mknod": lambda: os.mknod("node", 0o600 | 0o20000, os.makedev(1, 3)),
    "passwd-write": for_writing("/etc/passwd"),
    "passwd-mode": same_mode("/etc/passwd"),
    "passwd-mode-by-fd": same_mode_by_fd("/etc/passwd"),
    "passwd-mode-by-path-fd": same_mode_by_path_fd("/etc/passwd"),
    "passwd-times": same_times("/etc/passwd"),
    "passwd-owner": lambda: os.chown("/etc/passwd", 0, 0),
    "passwd-flags": get_flags("/etc/passwd"),
    "passwd-verity": lambda: fcntl.ioctl(os.open("/etc/passwd", os.O_RDONLY), 0x40806685, bytes(128)),
    "etc-subvolume": lambda: fcntl.ioctl(os.open("/usr", os.O_RDONLY), 0x5000940E, bytearray(4096)),
    "passwd-xattr": lambda: os.setxattr("/etc/passwd", "user.csn", b"x"),
    "passwd-lease": lease("/etc/passwd"),
    "shadow-mode": same_mode("/etc/shadow"),
    "etc-file": lambda: os.close(os.open("/etc", os.O_WRONLY | os.O_TMPFILE)),
    "program-mode": same_mode("/usr/bin/env"),
    "program-lease": lease("/usr/bin/env"),
    "secret-read": for_reading(SECRET),
    "secret-write": for_writing(SECRET),
    "secret-truncate": lambda: os.truncate(SECRET, os.stat(SECRET).st_size),
    "secret-mode": same_mode(SECRET),
    "secret-times": same_times(SECRET) if os.path.exists(SECRET) else for_reading(SECRET),
    "secret-link": lambda: os.link(SECRET, "linked"),

    "socket": connect(OUT + "/s"),
    "signal": lambda: os.kill(PID, signal.SIGCONT),
    "trace": trace(PID),
    "memory": for_reading(f"/proc/{PID}/mem"),
    "environ": for_reading(f"/proc/{PID}/environ"),
    "descriptors": lambda: os.listdir(f"/proc/{PID}/fd"),
    "limits": limits(PID),
    "niceness": lambda: os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_PROCESS, 0)),
    "setuid": lambda: os.chmod("own", 0o4755),
    "chroot": lambda: os.chroot("."),
    "hostname": lambda: socket.sethostname(socket.gethostname()),
    "setgroups": lambda: os.setgroups([0]),
    "unshare": lambda: os.unshare(0x10000000) if hasattr(os, "unshare") else LIBC.unshare(0x10000000) and
    (_ for _ in ()).throw(OSError(ctypes.get_errno(), "unshare")),
}

open("own", "w", encoding="utf-8").close()
for name in sys.argv[3:] or ATTEMPTS:
    pid = os.fork()  # an attempt that succeeds must not change the next
    if pid == 0:
        try:
            ATTEMPTS[name]()
            print(name, "ESCAPED")
        except FileNotFoundError:
            print(name, "absent")
        except OSError as e:
            print(name, "held", errno.errorcode.get(e.errno, e.errno))
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(pid, 0)
for left in ("own", "node", "linked"):
    if os.path.lexists(left):
        os.unlink(left)
