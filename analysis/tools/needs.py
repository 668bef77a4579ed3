"""Imported first by every script: lets it find the package `thompson` and the modules of all folders here, and prints one sentence if the
Python that runs it lacks packages which another one may have. figures/ and claims/ link to this file."""
import os
import pathlib
import sys

ANALYSIS = pathlib.Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(ANALYSIS / folder) for folder in ("figures", "claims", "tools", "")]


def explain(kind, error, trace):
    """Replaces sys.excepthook."""
    if not issubclass(kind, ModuleNotFoundError):
        return sys.__excepthook__(kind, error, trace)
    print(f"{os.path.basename(sys.argv[0])}: {sys.executable} has no {error.name}; `source jobs/environment.sh` puts a Python that has everything first in PATH, "
          "and jobs/install_debian.sh installs one", file=sys.stderr)
    return None


sys.excepthook = explain
