"""setup.py: what pyproject.toml cannot say: the version, and the tag of the wheel.

The package has programs for one kind of machine and no extension module, so one wheel serves all
versions of Python. `build` puts the programs into the package and runs this.
"""
import os
import pathlib

from setuptools import Distribution, setup
from wheel.bdist_wheel import bdist_wheel

LIBRARY = pathlib.Path(__file__).parent / "src/caisson/_lib/libcaisson.so"


class Binary(Distribution):
    def has_ext_modules(self):
        return True


class Wheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", os.environ["CAISSON_PLATFORM"]


if not LIBRARY.exists() or "CAISSON_PLATFORM" not in os.environ:
    raise SystemExit("setup.py: the package has no libcaisson.so: use bindings/python/build")
setup(version=os.environ["CAISSON_VERSION"], distclass=Binary, cmdclass={"bdist_wheel": Wheel})
