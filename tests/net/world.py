#!/usr/bin/python3
"""world.py: a small internet of the tests' own, and a command that lives on a host in it.

    world.py [--dir DIR] -- COMMAND...

Two network namespaces joined by one cable. On one side servers with public addresses: a DNS
server that knows the zone below and writes down every question, and for each address HTTP on 80,
HTTPS on 443 (certificates of a CA made for the run) and on 444 after a HelloRetryRequest, an echo on 7 and 853 and a server that speaks
first on 22 (at ssh.test a real sshd, if there is one); datagrams to any of them are written down.
On the other side COMMAND, with that DNS server in /etc/resolv.conf and nothing else to reach. Works
as root and, through a user namespace that maps the caller to itself, as anybody: COMMAND has the
caller's number and no capabilities then.

DIR (a temporary one by default, in $WORLD) has ca.pem, queries (one "type name" a line), served
(one "server:port what" a line), www/HOST/... (files that HTTP serves instead of its usual answer)
and, with sshd, ssh_key and ssh_known for the user `tester`. COMMAND gets WORLD in its environment.
The exit status is COMMAND's; 77 when the host allows no such namespaces.
"""
import argparse
import ctypes
import itertools
import os
import re
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
HOST_LAN = "93.184.216.200"  # public by number, and the host's own
SSH = "93.184.216.30"
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
    # not the allowed name, however much they look like it
    "ok.test.evil.test": (["93.184.216.66"], []),
    "evil-ok.test": (["93.184.216.66"], []),
    "okxtest": (["93.184.216.66"], []),
    "x.evil.test": (["93.184.216.66"], []),
    # a name that leads to a network of content servers
    "pop.edge.test": (["93.184.216.16"], []),
    # answers that no name may lead to
    "four.bad.test": (["127.0.0.1"], []),
    "six.bad.test": ([], ["::1"]),
    "mapped.bad.test": ([], ["::ffff:127.0.0.1"]),
    "zero.bad.test": (["0.0.0.0"], []),
    "zero6.bad.test": ([], ["::"]),
    "meta.bad.test": (["169.254.169.254"], []),
    "meta6.bad.test": ([], ["fd00:ec2::254"]),
    "meta100.bad.test": (["100.100.100.200"], []),
    "private.bad.test": (["10.1.2.3"], []),
    "lan.bad.test": ([HOST_LAN], []),
    "nat64.bad.test": ([], ["64:ff9b::7f00:1"]),
}
CNAMES = {"cdn.ok.test": "www.edge.test", "www.edge.test": "pop.edge.test"}
# One answer after another, for nobody to keep; the last of FINALLY stays.
ROTATING = {"rotate.test": itertools.cycle(["93.184.216.10", "93.184.216.16", "93.184.216.20"])}
FINALLY = {"rebind.test": ["93.184.216.10", "127.0.0.1"], "rebound.test": ["127.0.0.1", "93.184.216.10"]}
ADDRESSES4 = ["93.184.216.%d" % n for n in (10, 16, 20, 66)] + \
    [SSH, "10.1.2.3", "169.254.169.254", "100.100.100.200"]
ADDRESSES6 = ["2a00:200::%d" % n for n in (10, 16, 20)] + ["fd00:ec2::254", "64:ff9b::7f00:1"]
UDP_PORTS = (53, 443, 4433)
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
        self.root = os.path.dirname(path) + "/www"

    def line(self, text):
        with self.lock:
            self.file.write(text + "\n")


def look_up(name, kind):
    """(exists, names on the way, records)."""
    way = []
    while name in CNAMES:
        name = CNAMES[name]
        way.append(name)
    if kind == 1 and name in ROTATING:
        return True, way, [next(ROTATING[name])]
    if kind == 1 and name in FINALLY:
        left = FINALLY[name]
        return True, way, [left.pop(0) if len(left) > 1 else left[0]]
    known = ZONE.get(name) or ((([], [])) if name in ROTATING or name in FINALLY else None)
    return known is not None, way, (known or ([], []))[0 if kind == 1 else 1] if kind in (1, 28) else []


def encode(name):
    return b"".join(bytes([len(p)]) + p.encode("latin-1") for p in name.split(".")) + b"\0"


def answer(query, log):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
        at += query[at] + 1
    kind = struct.unpack("!H", query[at + 1:at + 3])[0]
    name = ".".join(labels).lower()
    log.line("%s %s" % ({1: "A", 28: "AAAA"}.get(kind, kind), name))
    exists, way, records = look_up(name, kind)
    out = query[:2] + struct.pack("!HHHHH", 0x8180 | (0 if exists else 3), 1, len(way) + len(records), 0, 0)
    out += query[12:at + 5]
    owner = name
    for target in way:
        out += encode(owner) + struct.pack("!HHIH", 5, 1, 0, len(encode(target))) + encode(target)
        owner = target
    for r in records:
        raw = socket.inet_pton(socket.AF_INET if kind == 1 else socket.AF_INET6, r)
        out += encode(owner) + struct.pack("!HHIH", kind, 1, 0, len(raw)) + raw
    return out


def serve_dns(log):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # beside serve_udp
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


def serve_udp(family, port, log):
    """Whatever arrives, at any address, is only written down."""
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind(("", port))
    while True:
        data, peer = s.recvfrom(65536)
        log.line("udp:%d %s %s" % (port, peer[0], data[:40].decode("latin-1").split(".")[0]))


def page(where, root, host, path):
    """(status, more of the head, body). /to/URL: go there."""
    if path.startswith("/to/"):
        return 302, "Location: %s\r\n" % path[4:], b""
    file = os.path.normpath("%s/%s/%s" % (root, host, path.split("?")[0]))
    if os.path.isdir(file):
        file += "/index.html"
    if os.path.isfile(file):
        with open(file, "rb") as f:
            return 200, "Content-Type: text/html\r\n" if file.endswith(".html") else "", f.read()
    if os.path.isdir(root + "/" + host) and "/mirror/" in path:
        return 404, "", b""
    return 200, "", ("server %s host %s path %s\n" % (where, host, path)).encode()


def send_zeros(conn, left):
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % left)
    while left > 0:
        conn.sendall(ZEROS[:left])
        left -= len(ZEROS)


def serve_http(conn, where, log):
    """Says which server it was, and the Host it was asked for; or a file of www/HOST. /bytes/N: so
    many zeros."""
    if isinstance(conn, ssl.SSLSocket) and conn.selected_alpn_protocol() == "h2":
        return serve_h2(conn, where, log)
    while True:
        head = http_head(conn)
        if head is None:
            return
        method, path = head.split(" ")[:2]
        host = [h.split(":", 1)[1].strip() for h in head.split("\r\n") if h.lower().startswith("host:")]
        host = host[0] if host else "-"
        log.line("%s %s %s" % (where, host, path))
        if path.startswith("/bytes/"):
            send_zeros(conn, int(path[7:]))
            continue
        status, more, body = page(where, log.root, host.split(":")[0], path)
        conn.sendall(b"HTTP/1.1 %d x\r\n%sContent-Length: %d\r\n\r\n" % (status, more.encode(), len(body)) +
                     (b"" if method == "HEAD" else body))


def serve_h2(conn, where, log):
    """As much of HTTP/2 as shows that a request has come, and for whom: its head is not packed."""
    data = b""
    while True:
        data += conn.recv(65536)
        m = re.search(rb":authority.([a-z.-]+)", data, re.DOTALL)
        if m:
            log.line("%s h2 %s" % (where, m.group(1).decode()))
            conn.sendall(b"h2 for %s\n" % m.group(1))
            return


def serve_ssh(conn, where, log):
    """sshd for this one connection, as nobody in particular."""
    log.line("%s ssh" % where)
    become = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    with open(log.root + "/../sshd.log", "ab") as said:
        subprocess.run(["/usr/sbin/sshd", "-i", "-e", "-f", log.root + "/../sshd_config"], stdin=conn,
                       stdout=conn, stderr=said, **become)


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
    tls.set_alpn_protocols(["http/1.1", "h2"])  # the latter for who has nothing else
    retry = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    retry.load_cert_chain(where + "/server.pem", where + "/server.key")
    retry.set_ecdh_curve("secp521r1")  # of which no client sends a share at first
    start(serve_dns, queries)
    for port in UDP_PORTS:
        start(serve_udp, socket.AF_INET, port, served)
        start(serve_udp, socket.AF_INET6, port, served)
    for family, addresses in ((socket.AF_INET, ADDRESSES4), (socket.AF_INET6, ADDRESSES6)):
        for a in addresses:
            start(listen, family, a, 80, serve_http, None, served)
            start(listen, family, a, 443, serve_http, tls, served)
            start(listen, family, a, 444, serve_http, retry, served)
            start(listen, family, a, 7, serve_echo, None, served)
            start(listen, family, a, 853, serve_echo, None, served)
            real = a == SSH and os.path.exists(where + "/sshd_config")
            start(listen, family, a, 22, serve_ssh if real else serve_first, None, served)


def make_certificates(where):
    names = ",".join("DNS:" + n for n in (*ZONE, *CNAMES, *ROTATING, *FINALLY))
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


def prepare_ssh(where):
    if not os.path.exists("/usr/sbin/sshd") or not os.path.exists("/usr/bin/ssh-keygen"):
        return
    for name in ("ssh_host", "ssh_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", where + "/" + name], check=True)
    with open(where + "/ssh_host.pub") as f:
        write(where + "/ssh_known", "ssh.test " + f.read())
    write(where + "/sshd_config", "".join(line + "\n" for line in (
        "HostKey %s/ssh_host" % where, "AuthorizedKeysFile %s/ssh_key.pub" % where, "PidFile none",
        "StrictModes no", "UsePAM no", "PasswordAuthentication no", "PrintMotd no",
        "SetEnv GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=*")))
    if os.geteuid() == 0:
        os.chown(where + "/ssh_host", 65534, 65534)


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
    ip("addr", "add", HOST_LAN + "/32", "dev", "lo")


def route_out():
    ip("route", "add", "default", "via", DNS4)
    ip("-6", "route", "add", "default", "via", DNS6)


def in_place_of(target, source):
    target = os.path.realpath(target)
    if libc.mount(source.encode(), target.encode(), None, 0x1000, None) != 0:  # MS_BIND
        raise OSError(ctypes.get_errno(), "mount " + target)


def own_files(where):
    """The resolver's address, and an account for who logs in by ssh."""
    if libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None) != 0:  # MS_REC | MS_PRIVATE
        raise OSError(ctypes.get_errno(), "mount")
    write(where + "/resolv.conf", "nameserver %s\noptions timeout:15 attempts:2\n" % DNS4)
    in_place_of("/etc/resolv.conf", where + "/resolv.conf")
    uid = os.geteuid() or 65534
    with open("/etc/passwd") as f:
        write(where + "/passwd", f.read() + "tester:x:%d:%d::%s:/bin/sh\n" % (uid, uid, where))
    in_place_of("/etc/passwd", where + "/passwd")


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
    os.mkdir(where + "/www")
    try:
        own_namespaces()
        own_files(where)
    except OSError as e:
        print("world: no namespaces here: %s" % e, file=sys.stderr)
        return 77
    prepare_ssh(where)
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
