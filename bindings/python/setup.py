"""setup.py: what pyproject.toml cannot say: the version, and the tag of the wheel.

The package has programs for one kind of machine and no extension module, so one wheel serves all
versions of Python. `build` puts the programs into the package and runs this.
"""
import os
import pathlib

from setuptools import setup
from wheel.bdist_wheel import bdist_wheel

LIBRARY = pathlib.Path(__file__).parent / "src/caisson/_lib/libcaisson.so"


class Wheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", os.environ["CAISSON_PLATFORM"]


if not LIBRARY.exists() or "CAISSON_PLATFORM" not in os.environ:
    raise SystemExit("setup.py: the package has no libcaisson.so: use bindings/python/build")
setup(version=os.environ["CAISSON_VERSION"], cmdclass={"bdist_wheel": Wheel})
