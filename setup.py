"""The wheel: the Python package with libthompson in it, which CMake builds without MPI. THOMPSON_LIBRARY names one that is built already."""
import os
import pathlib
import re
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution
from wheel.bdist_wheel import bdist_wheel

SOURCE = pathlib.Path(__file__).resolve().parent
SONAME = "libthompson.so.0"


def library(folder):
    """libthompson, built in this folder unless there is one."""
    if os.environ.get("THOMPSON_LIBRARY"):
        return os.environ["THOMPSON_LIBRARY"]
    subprocess.run(["cmake", "-S", SOURCE, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DTHOMPSON_LIBRARY_ONLY=ON", "-DBUILD_TESTING=OFF"], check=True)
    subprocess.run(["cmake", "--build", folder, "--target", "thompson_shared", "--parallel", str(os.cpu_count() or 1)], check=True)
    return folder / "src" / "library" / SONAME


class WithLibrary(build_py):
    def run(self):
        super().run()
        target = pathlib.Path(self.build_lib, "thompson", SONAME)
        built = library(pathlib.Path(self.get_finalized_command("build").build_temp).resolve() / "library")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(built, target)


class OfThisPlatform(bdist_wheel):
    def get_tag(self):
        """Any Python 3, this system: the library does not use Python's interface."""
        return "py3", "none", super().get_tag()[2]


class Binary(Distribution):
    def has_ext_modules(self):
        return True


setup(version=re.search(r"project\(thompson VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8")).group(1),
      cmdclass={"build_py": WithLibrary, "bdist_wheel": OfThisPlatform}, distclass=Binary)
