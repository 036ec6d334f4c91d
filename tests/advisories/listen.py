#!/usr/bin/python3
"""listen.py PORT-FILE CAME-FILE: a listener on the loopback that writes down every byte it gets.

The port that the kernel chose is in PORT-FILE. It answers each connection with an empty HTTP reply and
ends when it is killed.
"""
import os
import socket
import sys
import threading

lock = threading.Lock()


def serve(conn, came):
    conn.settimeout(10)
    try:
        while True:
            data = conn.recv(65536)
            if not data:
                break
            with lock, open(came, "ab") as f:
                f.write(data)
            if b"\r\n\r\n" in data:
                conn.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                break
    except OSError:
        pass
    conn.close()


def main():
    s = socket.socket()
    s.bind((sys.argv[3] if len(sys.argv) > 3 else "127.0.0.1", 0))
    s.listen(16)
    open(sys.argv[2], "ab").close()
    with open(sys.argv[1] + ".new", "w", encoding="ascii") as f:
        f.write(str(s.getsockname()[1]))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    while True:
        conn, _ = s.accept()
        with lock, open(sys.argv[2], "ab") as f:
            f.write(b"connection\n")
        threading.Thread(target=serve, args=(conn, sys.argv[2]), daemon=True).start()


main()
