#!/usr/bin/python3
"""through.py socks|connect NAME PORT TEXT: TEXT to NAME through the proxy that the variables name, or
directly where there is none. \\xNN in NAME is understood. Prints what comes back."""
import os
import re
import socket
import sys


def proxy(kind):
    names = ("ALL_PROXY", "all_proxy") if kind == "socks" else ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy")
    for name in names:
        found = re.match(r"\w+://(?:([^@/]*)@)?([^:/]+):(\d+)", os.environ.get(name, ""))
        if found:
            return found.group(1), (found.group(2), int(found.group(3)))
    return None, None


def main():
    kind, name, port, text = sys.argv[1:5]
    name = name.encode("latin-1").decode("unicode_escape").encode("latin-1")
    port = int(port)
    user, where = proxy(kind)
    if not where:
        s = socket.create_connection((name.split(b"\0")[0].strip(b"[]").decode(), port), 10)
    elif kind == "socks":
        s = socket.create_connection(where, 10)
        s.sendall(b"\5\2\0\2" if user else b"\5\1\0")
        if s.recv(2)[1:] == b"\2":
            u, _, p = user.encode().partition(b":")
            s.sendall(b"\1" + bytes([len(u)]) + u + bytes([len(p)]) + p)
            s.recv(2)
        s.sendall(b"\5\1\0\3" + bytes([len(name)]) + name + port.to_bytes(2, "big"))
        print("socks answers", s.recv(10)[1:2].hex())
    else:
        s = socket.create_connection(where, 10)
        s.sendall(b"CONNECT " + name + b":" + str(port).encode() + b" HTTP/1.1\r\nHost: ok.test\r\n\r\n")
        print("proxy answers", s.recv(4096)[:12])
    s.settimeout(10)
    s.sendall(text.encode().decode("unicode_escape").encode())
    print(s.recv(4096))


try:
    main()
except OSError as e:
    print("failed:", e)
