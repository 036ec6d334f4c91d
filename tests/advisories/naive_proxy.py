#!/usr/bin/python3
"""naive_proxy.py PORT-FILE: the control of the allow-list advisories: a SOCKS5 and HTTP CONNECT proxy with
the mistakes that were published. It allows ok.test by the end of the text, and dials the part before a zero
byte, whatever form of address that is. Never a model for anything.
"""
import os
import socket
import struct
import sys
import threading


def allowed(name):
    return name.endswith("ok.test") or name.startswith("ok.test") or name[:1].isdigit() or ":" in name


def relay(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass


def dial(conn, name, port, yes, no):
    if not allowed(name):
        return conn.sendall(no)
    up = socket.create_connection((name.split("\0")[0].strip("[]"), port), 10)
    conn.sendall(yes)
    threading.Thread(target=relay, args=(up, conn), daemon=True).start()
    return relay(conn, up)


def serve(conn):
    first = conn.recv(1)
    if first == b"\5":
        conn.recv(conn.recv(1)[0])
        conn.sendall(b"\5\0")
        size = conn.recv(5, socket.MSG_WAITALL)[4]
        name = conn.recv(size, socket.MSG_WAITALL).decode("latin-1")
        port, = struct.unpack("!H", conn.recv(2, socket.MSG_WAITALL))
        dial(conn, name, port, b"\5\0\0\1" + bytes(6), b"\5\2\0\1" + bytes(6))
    else:
        head = first
        while b"\r\n\r\n" not in head:
            head += conn.recv(4096)
        name, _, port = head.split()[1].decode("latin-1").rpartition(":")
        dial(conn, name, int(port), b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 403 No\r\n\r\n")


def safe(conn):
    try:
        serve(conn)
    except (OSError, IndexError, ValueError):
        pass
    conn.close()


server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen(16)
with open(sys.argv[1] + ".new", "w", encoding="ascii") as f:
    f.write(str(server.getsockname()[1]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    threading.Thread(target=safe, args=(server.accept()[0],), daemon=True).start()
