#!/usr/bin/python3
"""swap.py A B: exchanges two names as fast as the kernel does it, until a file `stop` lies beside A."""
import ctypes
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
a, b = (os.fsencode(x) for x in sys.argv[1:3])
stop = os.path.join(os.path.dirname(a), b"stop")
AT_FDCWD, RENAME_EXCHANGE = -100, 2
while not os.path.lexists(stop):
    for _ in range(1000):
        libc.renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE)
