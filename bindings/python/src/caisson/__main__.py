"""__main__.py: the command `caisson` of this package."""
from __future__ import annotations

import os
import sys
from typing import NoReturn

HOME = os.path.join(os.path.dirname(os.path.realpath(__file__)), "_lib")


def main() -> NoReturn:
    os.execv(os.path.join(HOME, "caisson"), ["caisson", *sys.argv[1:]])


if __name__ == "__main__":
    main()
