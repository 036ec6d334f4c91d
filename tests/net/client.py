#!/usr/bin/python3
"""client.py: one attempt on the network, told in one line. Run inside a jail and, as the control, on
the host beside it, by the scripts of this directory.

    dns TYPE NAME [@SERVER] [tcp]     the answer: CODE and how many records (\\xNN is understood)
    flood N NAME                      how many answers of each code N questions get
    raw HOST PORT TEXT...             sends the texts one after another (\\r\\n and \\xNN are understood),
                                      prints what comes back; then `closed`, `reset` or `silent`
    tls HOST PORT SNI REQUEST-HOST [segments=N] [records=N] [ech] [h2] [old]
                                      an own ClientHello (SNI `-`: none), then a request
      [again=NAME] [segments2=N] [records2=N]
                                      the second flight, that name in place of SNI (as long as it)
      [after=TEXT]                    sends that behind the first ClientHello, at once
    udp HOST PORT TEXT [WORD...]      one datagram
    tcp HOST PORT [WORD...]           connects, says `ping`, waits for anything
    socket FAMILY TYPE PROTOCOL       by number
    route                             adds a route, by netlink
    serve PORT                        an HTTP server on every address, for controls

Words for udp and tcp: ttl=N, options=HEX, from=PORT, broadcast, big (more than a packet holds).
"""
import errno
import os
import random
import socket
import ssl
import struct
import sys
import time

PATIENCE = 60  # what should happen at once may take this long on a busy machine
SILENCE = float(os.environ.get("SILENCE", PATIENCE))  # where nothing may come at all
TYPES = {"A": 1, "NULL": 10, "TXT": 16, "AAAA": 28, "SVCB": 64, "HTTPS": 65, "ANY": 255}
CODES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED"}


def name_of(e):
    return errno.errorcode.get(e.errno, str(e)) if isinstance(e, OSError) and e.errno else str(e)


def unescape(text):
    return text.encode("latin-1").decode("unicode_escape").encode("latin-1")


# ---- DNS ----------------------------------------------------------------------------------------

def resolver():
    for line in open("/etc/resolv.conf"):
        if line.startswith("nameserver"):
            return line.split()[1]


def question(kind, name):
    parts = [unescape(p) for p in name.rstrip(".").split(".")]
    labels = b"".join(bytes([len(p)]) + p for p in parts)
    return struct.pack("!HHHHHH", random.randrange(65536), 0x100, 1, 0, 0, 0) + labels + \
        struct.pack("!BHH", 0, TYPES.get(kind) or int(kind), 1)


def ask_udp(server, query):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(PATIENCE)
    s.connect((server, 53))
    s.send(query)
    return s.recv(4096)


def ask_tcp(server, query):
    s = socket.create_connection((server, 53), PATIENCE)
    s.sendall(struct.pack("!H", len(query)) + query)
    got = b""
    while len(got) < 2 or len(got) < 2 + struct.unpack("!H", got[:2])[0]:
        more = s.recv(4096)
        if not more:
            raise OSError(errno.ECONNRESET, "closed")
        got += more
    return got[2:]


def dns(kind, name, *words):
    server = next((w[1:] for w in words if w.startswith("@")), None) or resolver()
    reply = (ask_tcp if "tcp" in words else ask_udp)(server, question(kind, name))
    code, count = reply[3] & 15, struct.unpack("!H", reply[6:8])[0]
    print(CODES.get(code, code), count)


def flood(count, name):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(PATIENCE)
    s.connect((resolver(), 53))
    seen = {}
    for n in range(int(count)):
        s.send(question("A", "%d.%s" % (n, name)))
        if n % 20 < 19 and n + 1 < int(count):
            continue
        for _ in range(n % 20 + 1):  # as fast as one program can, and none is lost
            code = CODES.get(s.recv(4096)[3] & 15)
            seen[code] = seen.get(code, 0) + 1
    print(" ".join("%s=%d" % kv for kv in sorted(seen.items())))


# ---- streams ------------------------------------------------------------------------------------

def drain(s, enough=65536):
    """What comes, and how it ended."""
    got = b""
    try:
        while len(got) < enough:
            more = s.recv(65536)
            if not more:
                return got, "closed"
            got += more
            s.settimeout(2)  # nobody here makes a pause
    except socket.timeout:
        return got, "silent"
    except ConnectionResetError:
        return got, "reset"
    return got, "open"


def show(got, end):
    sys.stdout.write(got.decode("latin-1").replace("\r", ""))
    print(end)


def raw(host, port, *texts):
    s = socket.create_connection((host, int(port)), PATIENCE)
    got = b""
    for t in texts[:-1]:
        s.sendall(unescape(t))
        s.settimeout(PATIENCE)
        got += s.recv(65536)
    s.sendall(unescape(texts[-1]))
    s.settimeout(SILENCE)
    more, end = drain(s)
    show(got + more, end)


def add_ech(record):
    """The same hello with one more extension: encrypted_client_hello, outer."""
    at = 5 + 4 + 2 + 32
    at += 1 + record[at]
    at += 2 + struct.unpack("!H", record[at:at + 2])[0]
    at += 1 + record[at]
    body = struct.pack("!BHHBH", 0, 1, 1, 7, 32) + os.urandom(32) + struct.pack("!H", 144) + os.urandom(144)
    ext = struct.pack("!HH", 0xFE0D, len(body)) + body
    length = struct.unpack("!H", record[at:at + 2])[0] + len(ext)
    hello = record[9:at] + struct.pack("!H", length) + record[at + 2:] + ext
    shake = b"\1" + struct.pack("!I", len(hello))[1:] + hello
    return record[:3] + struct.pack("!H", len(shake)) + shake


def in_records(record, count):
    body = record[5:]
    step = len(body) // count + 1
    parts = [body[i:i + step] for i in range(0, len(body), step)]
    return b"".join(record[:3] + struct.pack("!H", len(p)) + p for p in parts)


def in_segments(s, data, count):
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    step = len(data) // count + 1
    for i in range(0, len(data), step):
        s.sendall(data[i:i + step])
        time.sleep(0.05)  # so that it is read before the next


def second_flight(s, data, sni, opts):
    """A ClientHello after a HelloRetryRequest, behind a change_cipher_spec."""
    if "again" in opts:
        data = data.replace(sni.encode(), opts["again"].encode())
    change = data[:6] if data[:1] == b"\x14" else b""
    hello = data[len(change):]
    in_segments(s, change + in_records(hello, int(opts.get("records2", 1))), int(opts.get("segments2", 1)))


H2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"


def h2_request(authority):
    """Literal headers only, so that a server without a table can read them."""
    def pair(k, v):
        return b"\0" + bytes([len(k)]) + k + bytes([len(v)]) + v
    block = pair(b":method", b"GET") + pair(b":scheme", b"https") + pair(b":path", b"/h2") + \
        pair(b":authority", authority.encode())
    return H2 + struct.pack("!I", len(block))[1:] + b"\1\5" + struct.pack("!I", 1) + block


def tls(host, port, sni, request_host, *words):
    opts = dict(w.split("=", 1) for w in words if "=" in w)
    ctx = ssl.create_default_context(cafile="ca.pem")
    ctx.check_hostname = False
    if "h2" in words:
        ctx.set_alpn_protocols(["h2"])
    if "old" in words:
        ctx.maximum_version = ssl.TLSVersion.TLSv1_2
    came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
    t = ctx.wrap_bio(came, goes, server_hostname=None if sni == "-" else sni)
    s = socket.create_connection((host, int(port)), PATIENCE)
    request = h2_request(request_host) if "h2" in words else \
        ("GET /tls HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % request_host).encode()
    flight = 0
    try:
        while True:
            try:
                t.do_handshake()
                break
            except ssl.SSLWantReadError:
                pass
            data = goes.read()
            flight += len(data) > 0
            if flight == 1 and data:
                data = add_ech(data) if "ech" in words else data
                data = in_records(data, int(opts.get("records", 1))) + unescape(opts.get("after", ""))
                in_segments(s, data, int(opts.get("segments", 1)))
            elif flight == 2 and data and int(port) == 444:
                second_flight(s, data, sni, opts)
            elif data:
                s.sendall(data)
            more = s.recv(65536)
            if not more:
                print("closed")
                return
            # our transcript is another one: what counts is that it answered
            if "ech" in words or (flight == 2 and "again" in opts):
                print("alert" if more[:1] == b"\x15" else "answered")
                return
            came.write(more)
        t.write(request)
        s.sendall(goes.read())
        got = b""
        while True:
            more = s.recv(65536)
            if not more:
                break
            came.write(more)
            try:
                while True:
                    got += t.read(65536)
                    if got.endswith(b"\n"):
                        raise StopIteration
            except ssl.SSLWantReadError:
                continue
    except (StopIteration, ssl.SSLZeroReturnError):
        pass
    print(got.split(b"\r\n\r\n")[-1].decode("latin-1").strip())


# ---- packets ------------------------------------------------------------------------------------

def prepare(s, words):
    v6 = s.family == socket.AF_INET6
    for w in words:
        key, _, value = w.partition("=")
        if key == "ttl":
            s.setsockopt(socket.IPPROTO_IPV6 if v6 else socket.IPPROTO_IP,
                         socket.IPV6_UNICAST_HOPS if v6 else socket.IP_TTL, int(value))
        elif key == "options":
            s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, bytes.fromhex(value))
        elif key == "from":
            s.bind(("", int(value)))
        elif key == "broadcast":
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)


def udp(host, port, text, *words):
    family, _, _, _, to = socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)[0]
    s = socket.socket(family, socket.SOCK_DGRAM)
    prepare(s, words)
    data = text.encode() + (b"." * 20000 if "big" in words else b"")
    s.sendto(data, to)
    s.settimeout(0.3)  # an ICMP answer comes as an error of the next call
    s.connect(to)
    try:
        s.send(data)
        s.recv(1)
    except socket.timeout:
        pass
    print("sent")


def tcp(host, port, *words):
    family, _, _, _, to = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
    s = socket.socket(family, socket.SOCK_STREAM)
    prepare(s, words)
    s.settimeout(PATIENCE)
    s.connect(to)
    s.sendall(b"ping\n")
    got = s.recv(100)
    print("answered" if got else "closed")


def make_socket(family, kind, protocol):
    socket.socket(int(family), int(kind), int(protocol)).close()
    print("made")


def route():
    """198.51.100.0/24 to the first device, as `ip route add` would."""
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    attrs = struct.pack("HH4s", 8, 1, bytes([198, 51, 100, 0])) + struct.pack("HHi", 8, 4, 1)
    body = struct.pack("BBBBBBBBI", 2, 24, 0, 0, 254, 4, 253, 1, 0) + attrs
    s.send(struct.pack("IHHII", 16 + len(body), 24, 0x405, 1, 0) + body)
    error = struct.unpack("i", s.recv(4096)[16:20])[0]
    if error:
        raise OSError(-error, "route")
    print("made")


def serve(port):
    import http.server

    class Both(http.server.ThreadingHTTPServer):
        address_family = socket.AF_INET6

        def server_bind(self):
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            super().server_bind()

    class Host(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = b"the host itself\n"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    Both(("::", int(port)), Host).serve_forever()


def main():
    what = {"dns": dns, "flood": flood, "raw": raw, "tls": tls, "udp": udp, "tcp": tcp,
            "socket": make_socket, "route": route, "serve": serve}
    try:
        what[sys.argv[1]](*sys.argv[2:])
    except ssl.SSLError as e:
        print("tls: %s" % e.reason)
    except ConnectionResetError:
        print("reset")
    except (OSError, UnicodeError) as e:
        print(name_of(e))


main()
