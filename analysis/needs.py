"""Imported first by every script: one sentence where the Python that runs it lacks packages which another one may have."""
import os
import sys


def explain(kind, error, trace):
    """In place of sys.excepthook."""
    if not issubclass(kind, ModuleNotFoundError):
        return sys.__excepthook__(kind, error, trace)
    print(f"{os.path.basename(sys.argv[0])}: {sys.executable} has no {error.name}; `source jobs/environment.sh` puts a Python that has all in front, "
          "and jobs/install_debian.sh installs one", file=sys.stderr)
    return None


sys.excepthook = explain
