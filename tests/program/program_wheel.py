#!/usr/bin/env python3
"""`pip install .` without a network: the wheel contains the library, needs neither MPI nor the program, and says in one sentence what needs the program.

The library is the one of this build; that CMake can configure it alone, without MPI, is tested, compiling it is not."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import venv
import zipfile

import program

BUILD, SOURCE = pathlib.Path(os.environ["THOMPSON_BUILD"]), pathlib.Path(os.environ["THOMPSON_SOURCE"])
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="thompson wheel-"))  # with a space
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("THOMPSON_", "PYTHON"))} | {"PATH": "/usr/bin:/bin"}
USE = """
import sys, numpy as np, thompson
prior = thompson.Prior.from_mixture([0.5, 0.5], np.eye(2, 3), [np.eye(3)] * 2)
agents = thompson.Agents(prior, 3, seed=1)
agents.observe([0, 2], np.eye(3)[:2], [1, 2])
agents.save("agents.nc")
assert (thompson.Agents.open("agents.nc").draw([0, 1, 2], 2) == agents.draw([0, 1, 2], 2)).all()
assert thompson.__file__.startswith(sys.prefix), thompson.__file__
assert "xarray" not in sys.modules  # it takes twice as long to import as all else
print(thompson.__version__)
"""


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **{"cwd": FOLDER, "env": ENVIRONMENT, "timeout": program.PATIENCE, **options})


def setUpModule():
    """Build the wheel from a copy of its sources, since pip leaves files in the source."""
    for name in ("pip", "setuptools", "wheel"):
        if not importlib.util.find_spec(name):
            raise unittest.SkipTest(f"{name} is missing")
    source = FOLDER / "source"
    for name in ("pyproject.toml", "setup.py", "README.md", "CMakeLists.txt", "LICENSE"):
        source.mkdir(exist_ok=True)
        shutil.copy(SOURCE / name, source)
    shutil.copytree(SOURCE / "analysis/thompson", source / "analysis/thompson", ignore=shutil.ignore_patterns("__pycache__"))
    venv.create(FOLDER / "root", system_site_packages=True, with_pip=False)
    (FOLDER / "thompson").mkdir()  # an empty folder of that name where Python looks first
    library = BUILD / "src/library/libthompson.so"
    made = run(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-index", "--no-deps", "-w", FOLDER, source, env={**ENVIRONMENT, "THOMPSON_LIBRARY": str(library)})
    if made.returncode:
        raise RuntimeError(made.stderr)
    installed = run(sys.executable, "-m", "pip", "--python", FOLDER / "root", "install", "--no-index", "--no-deps", *FOLDER.glob("*.whl"))
    if installed.returncode:
        raise RuntimeError(installed.stderr)


def tearDownModule():
    shutil.rmtree(FOLDER)


def python(*arguments):
    return run(FOLDER / "root/bin/python", *arguments)


class Wheel(unittest.TestCase):
    def test_contents(self):
        wheel, = FOLDER.glob("*.whl")
        self.assertRegex(wheel.name, r"^thompsonlab-\d+\.\d+\.\d+-py3-none-linux_")
        names = set(zipfile.ZipFile(wheel).namelist())
        self.assertLessEqual({"thompson/__init__.py", "thompson/__main__.py", "thompson/py.typed", "thompson/libthompson.so.0"}, names)

    def test_use(self):
        """It also works where a folder of that name would be taken for a package without code."""
        used = python("-c", USE)
        self.assertEqual((used.returncode, used.stdout.count(".")), (0, 2), used.stderr)

    def test_no_mpi(self):
        library, = (FOLDER / "root").rglob("libthompson.so.0")
        needs = run("ldd", library).stdout
        self.assertIn("libnetcdf", needs)
        self.assertNotIn("libmpi", needs)

    def test_library_lacks_another(self):
        """The error of a system without SLEEF names it, and the packages that have what pip does not install."""
        library, = (FOLDER / "root").rglob("libthompson.so.0")
        broken = FOLDER / "broken.so"
        broken.write_bytes(library.read_bytes().replace(b"libsleef.so", b"libsleep.so"))
        said = run(FOLDER / "root/bin/python", "-c", "import thompson; thompson.version()", env={**ENVIRONMENT, "THOMPSON_LIBRARY": str(broken)})
        self.assertRegex(said.stderr.splitlines()[-1], r"^ImportError: .*libsleep.so.*apt-get install .*libsleef-dev")

    def test_program_is_missing(self):
        """One sentence, and no traceback by `python -m thompson`."""
        for code in ("thompson.run({'name': 'a'})", "thompson.train(logs='logs.csv')", "thompson.train(theta=[[1.0], [2.0], [3.0]], ranks=2)", "thompson.problems()"):
            said = python("-c", f"import thompson; {code}")
            self.assertIn("need the program thompson, which pip does not install", said.stderr.splitlines()[-1], code)
        said = python("-m", "thompson", "run", "study.yaml")
        self.assertEqual((said.returncode, said.stderr.count("\n")), (1, 1), said.stderr)
        self.assertIn("docs/install.md", said.stderr)

    def test_module_is_the_program(self):
        """If there is a program, `python -m thompson` runs it."""
        said = run(FOLDER / "root/bin/python", "-m", "thompson", "--version", env={**ENVIRONMENT, "THOMPSON_PROGRAM": os.environ["THOMPSON_PROGRAM"]})
        self.assertEqual((said.returncode, said.stdout), (0, run(os.environ["THOMPSON_PROGRAM"], "--version").stdout))


class Configured(unittest.TestCase):
    def test_library_alone(self):
        """CMake, told to build only the library, does not look for MPI and has no program to build."""
        made = run("cmake", "-S", SOURCE, "-B", FOLDER / "library", "-DTHOMPSON_LIBRARY_ONLY=ON", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON")
        self.assertEqual(made.returncode, 0, made.stderr)
        targets = run("cmake", "--build", FOLDER / "library", "--target", "help").stdout
        self.assertIn("thompson_shared", targets)
        self.assertNotIn("thompson_core", targets)


if __name__ == "__main__":
    program.main()
