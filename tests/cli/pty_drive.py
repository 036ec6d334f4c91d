#!/usr/bin/env python3
"""pty_drive.py [-2 FILE] STEPS COMMAND...: runs COMMAND on a terminal of its own, 30 x 90.

STEPS are separated by "|" and taken one after another, the first when the program is in raw mode
or has ended: =TEXT waits until TEXT was printed; WINCH changes the size to 41 x 99; TERM, HUP,
INT, QUIT, TSTP, CONT send a signal; STOPPED waits until the program is stopped; COOKED and RAW
wait until the terminal is in that mode; CLOSE hangs the terminal up; other text is typed, with
the escapes of Python. "*" first: the program does not set raw mode. Prints what the terminal
showed, and a last line with the exit status, whether raw mode was seen, and whether the mode is
restored. -2: stderr goes to FILE."""
import fcntl, os, pty, select, signal, struct, sys, termios, time

argv = sys.argv[1:]
stderr = None
if argv[0] == "-2":
    stderr, argv = argv[1], argv[2:]
script, argv = argv[0], argv[1:]
go, gate = os.pipe()
pid, fd = pty.fork()
if pid == 0:
    os.read(go, 1)
    if stderr:
        os.dup2(os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.execvp(argv[0], argv)
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 90, 0, 0))
before = termios.tcgetattr(fd)
os.write(gate, b"x")  # only then it may change that
out, raw_seen, alive = b"", False, True
end = time.time() + 120  # only what never happens takes so long


def take(seconds):
    """Reads what there is; False at the end."""
    global out, alive, raw_seen
    while alive:
        raw_seen |= is_raw()
        if not select.select([fd], [], [], seconds)[0]:
            break
        try:
            got = os.read(fd, 65536)
        except OSError:
            got = b""
        alive = bool(got)
        out += got
    return alive


def is_raw():
    return not termios.tcgetattr(fd)[3] & termios.ICANON


def is_stopped():
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "T"


def until(condition):
    while not condition() and take(0.02):
        if time.time() > end:
            print("[the step never happened, output: %r]" % out)
            os.kill(pid, signal.SIGKILL)
            sys.exit(1)


steps = [s.encode().decode("unicode_escape").encode("latin1") for s in script.split("|") if s]
if steps and steps[0] == b"*":
    steps.pop(0)
elif steps:
    until(is_raw)
for step in steps:
    if step.startswith(b"="):
        until(lambda: step[1:] in out)
    elif step == b"WINCH":
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 41, 99, 0, 0))
    elif step in (b"TERM", b"HUP", b"INT", b"QUIT", b"TSTP", b"CONT"):
        os.kill(pid, getattr(signal, "SIG" + step.decode()))
    elif step == b"STOPPED":
        until(is_stopped)
    elif step == b"COOKED":
        until(lambda: not is_raw())
    elif step == b"RAW":
        until(is_raw)
    elif step == b"CLOSE":
        os.close(fd)
        alive = False
    else:
        os.write(fd, step)
while alive:
    done, status = os.waitpid(pid, os.WNOHANG)
    if done:
        break
    take(0.05)
else:
    done, status = os.waitpid(pid, 0)
if steps[-1:] != [b"CLOSE"]:
    take(0)
    restored = termios.tcgetattr(fd)[:4] == before[:4]
else:
    restored = False
sys.stdout.write(out.decode("utf-8", "replace").replace("\r\n", "\n"))
print("\n[status=%d raw=%d restored=%d]" % (os.waitstatus_to_exitcode(status), raw_seen, restored))
