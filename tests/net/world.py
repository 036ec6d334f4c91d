#!/usr/bin/python3
"""world.py: a small internet of the tests' own, and a command that lives on a host in it.

    world.py [--dir DIR] -- COMMAND...

Two network namespaces joined by one cable. On one side servers with public addresses: a DNS
server that knows the zone below and writes down every question, and for each address HTTP on 80,
HTTPS on 443 (certificates of a CA made for the run), an echo on 7 and a server that speaks first
on 22. On the other side COMMAND, with that DNS server in /etc/resolv.conf and nothing else to
reach. Works as root and, through a user namespace that maps the caller to itself, as anybody:
COMMAND has the caller's number and no capabilities then.

DIR (a temporary one by default, in $WORLD) has ca.pem, queries (one "type name" a line), served
(one "server:port what" a line). COMMAND gets WORLD in its environment. The exit status is
COMMAND's; 77 when the host allows no such namespaces.
"""
import argparse
import ctypes
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
PR_CAP_AMBIENT, RAISE, CLEAR_ALL = 47, 2, 4
HOST4, DNS4 = "100.127.255.2", "100.127.255.1"
HOST6, DNS6 = "2a00:100::2", "2a00:100::1"
# name: (A records, AAAA records). Public addresses, so that no rule about ranges is in the way.
ZONE = {
    "ok.test": (["93.184.216.10"], []),
    "www.ok.test": (["93.184.216.10"], []),
    "dual.test": (["93.184.216.10"], ["2a00:200::10"]),
    "deep.sub.ok.test": (["93.184.216.10"], []),
    "six.test": ([], ["2a00:200::16"]),
    "other.test": (["93.184.216.20"], []),
    "evil.test": (["93.184.216.66"], []),
    "ssh.test": (["93.184.216.30"], []),
    "private.test": (["10.1.2.3"], []),
    "loop.test": (["127.0.0.1"], ["::1"]),
    "meta.test": (["169.254.169.254"], []),
    "mixed.test": (["10.1.2.3", "93.184.216.10"], []),
}
ADDRESSES4 = ["93.184.216.%d" % n for n in (10, 16, 20, 30, 66)] + ["10.1.2.3", "169.254.169.254"]
ADDRESSES6 = ["2a00:200::%d" % n for n in (10, 16, 20)]
ZEROS = memoryview(bytes(1 << 20))
libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags):
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def ip(*args):
    subprocess.run(["ip", *args], check=True, env={"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"})


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def own_namespaces():
    """Root needs no user namespace; anybody else stays who they are, with rights over the rest."""
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        unshare(CLONE_NEWNS | CLONE_NEWNET)
        return
    unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET)
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", "%d %d 1" % (uid, uid))
    write("/proc/self/gid_map", "%d %d 1" % (gid, gid))

    class Head(ctypes.Structure):
        _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]

    head, caps = Head(0x20080522, 0), (ctypes.c_uint32 * 6)()
    libc.capget(ctypes.byref(head), caps)
    caps[2], caps[5] = caps[1], caps[4]  # inheritable = permitted, for `ip`
    libc.capset(ctypes.byref(head), caps)
    for cap in range(64):
        libc.prctl(PR_CAP_AMBIENT, RAISE, cap, 0, 0)


# ---- servers ----------------------------------------------------------------------------------

class Log:
    def __init__(self, path):
        self.file, self.lock = open(path, "a", buffering=1), threading.Lock()

    def line(self, text):
        with self.lock:
            self.file.write(text + "\n")


def answer(query, log):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
        at += query[at] + 1
    kind = struct.unpack("!H", query[at + 1:at + 3])[0]
    name = ".".join(labels).lower()
    log.line("%s %s" % ({1: "A", 28: "AAAA"}.get(kind, kind), name))
    known = ZONE.get(name)
    records = (known or ([], []))[0 if kind == 1 else 1] if kind in (1, 28) else []
    out = query[:2] + struct.pack("!HHHHH", 0x8180 | (0 if known else 3), 1, len(records), 0, 0)
    out += query[12:at + 5]
    for r in records:
        raw = socket.inet_pton(socket.AF_INET if kind == 1 else socket.AF_INET6, r)
        out += struct.pack("!HHHIH", 0xC00C, kind, 1, 5, len(raw)) + raw
    return out


def serve_dns(log):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((DNS4, 53))
    while True:
        query, peer = s.recvfrom(4096)
        try:
            s.sendto(answer(query, log), peer)
        except (IndexError, struct.error):
            pass


def http_head(conn):
    data = b""
    while b"\r\n\r\n" not in data:
        more = conn.recv(65536)
        if not more:
            return None
        data += more
    return data.split(b"\r\n\r\n", 1)[0].decode("latin-1")


def serve_http(conn, where, log):
    """Says which server it was, and the Host it was asked for. /bytes/N: so many zeros."""
    while True:
        head = http_head(conn)
        if head is None:
            return
        path = head.split(" ")[1]
        host = [h.split(":", 1)[1].strip() for h in head.split("\r\n") if h.lower().startswith("host:")]
        log.line("%s %s %s" % (where, host[0] if host else "-", path))
        body = ("server %s host %s path %s\n" % (where, host[0] if host else "-", path)).encode()
        left = int(path[7:]) if path.startswith("/bytes/") else 0
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (left or len(body)))
        while left > 0:
            conn.sendall(ZEROS[:left])
            left -= len(ZEROS)
            body = b""
        conn.sendall(body)


def serve_echo(conn, where, log):
    log.line("%s echo" % where)
    while True:
        data = conn.recv(65536)
        if not data:
            return
        conn.sendall(data)


def serve_first(conn, where, log):
    log.line("%s first" % where)
    conn.sendall(b"SSH-2.0-world\r\n")
    serve_echo(conn, where, log)


def one(conn, fn, tls, where, log):
    try:
        with conn:
            fn(tls.wrap_socket(conn, server_side=True) if tls else conn, where, log)
    except (OSError, ValueError, IndexError):
        pass


def listen(family, address, port, fn, tls, log):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    s.listen(512)
    while True:
        conn, _ = s.accept()
        threading.Thread(target=one, args=(conn, fn, tls, "%s:%d" % (address, port), log),
                         daemon=True).start()


def start(fn, *args):
    threading.Thread(target=fn, args=args, daemon=True).start()


def serve_everything(where):
    queries, served = Log(where + "/queries"), Log(where + "/served")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(where + "/server.pem", where + "/server.key")
    start(serve_dns, queries)
    for family, addresses in ((socket.AF_INET, ADDRESSES4), (socket.AF_INET6, ADDRESSES6)):
        for a in addresses:
            start(listen, family, a, 80, serve_http, None, served)
            start(listen, family, a, 443, serve_http, tls, served)
            start(listen, family, a, 7, serve_echo, None, served)
            start(listen, family, a, 22, serve_first, None, served)


def make_certificates(where):
    names = ",".join("DNS:" + n for n in ZONE)
    run = lambda *a: subprocess.run(["openssl", *a], check=True, cwd=where, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
    run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=world")
    run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "server.key",
        "-out", "server.csr", "-subj", "/CN=world server")
    write(where + "/ext", "subjectAltName=%s\n" % names)
    run("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
        "-days", "2", "-extfile", "ext", "-out", "server.pem")
    for name in ("ca.key", "server.csr", "ext", "ca.srl"):
        os.unlink(where + "/" + name)


# ---- the two sides ----------------------------------------------------------------------------

def internet(where, ready_w, cable_r):
    """The servers' side, in a process of its own."""
    libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # ends with us
    unshare(CLONE_NEWNET)
    os.write(ready_w, b"n")
    if os.read(cable_r, 1) != b"c":
        os._exit(1)
    ip("link", "set", "lo", "up")
    for a in ADDRESSES4:
        ip("addr", "add", a + "/32", "dev", "lo")
    for a in ADDRESSES6:
        ip("-6", "addr", "add", a + "/128", "dev", "lo", "nodad")
    ip("addr", "add", DNS4 + "/30", "dev", "net0")
    ip("-6", "addr", "add", DNS6 + "/64", "dev", "net0", "nodad")
    ip("link", "set", "net0", "up")
    serve_everything(where)
    os.write(ready_w, b"r")
    signal.pause()


def join_up(pid):
    ip("link", "set", "lo", "up")
    ip("link", "add", "host0", "type", "veth", "peer", "name", "net0", "netns", str(pid))
    ip("addr", "add", HOST4 + "/30", "dev", "host0")
    ip("-6", "addr", "add", HOST6 + "/64", "dev", "host0", "nodad")
    ip("link", "set", "host0", "up")


def route_out():
    ip("route", "add", "default", "via", DNS4)
    ip("-6", "route", "add", "default", "via", DNS6)


def own_resolver(where):
    write(where + "/resolv.conf", "nameserver %s\noptions timeout:2 attempts:1\n" % DNS4)
    if libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None) != 0:  # MS_REC | MS_PRIVATE
        raise OSError(ctypes.get_errno(), "mount")
    target = os.path.realpath("/etc/resolv.conf").encode()
    if libc.mount((where + "/resolv.conf").encode(), target, None, 0x1000, None) != 0:
        raise OSError(ctypes.get_errno(), "mount " + target.decode())


def drop_rights():
    if os.geteuid() != 0:
        libc.prctl(PR_CAP_AMBIENT, CLEAR_ALL, 0, 0, 0)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--dir")
    p.add_argument("command", nargs="+")
    o = p.parse_args()
    where = os.path.abspath(o.dir) if o.dir else tempfile.mkdtemp(prefix="csn-world.")
    os.chmod(where, 0o755)
    make_certificates(where)
    try:
        own_namespaces()
    except OSError as e:
        print("world: no namespaces here: %s" % e, file=sys.stderr)
        return 77
    ready_r, ready_w = os.pipe()
    cable_r, cable_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        internet(where, ready_w, cable_r)
    try:
        if os.read(ready_r, 1) != b"n":
            return 99
        join_up(pid)
        os.write(cable_w, b"c")
        own_resolver(where)
        if os.read(ready_r, 1) != b"r":
            return 99
        route_out()
        return subprocess.run(o.command, env={**os.environ, "WORLD": where}, preexec_fn=drop_rights).returncode
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if not o.dir:
            subprocess.run(["rm", "-rf", where])


if __name__ == "__main__":
    sys.exit(main())
