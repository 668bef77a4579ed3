"""`python -m thompson ...` runs the program `thompson ...`."""
import os
import sys

from . import studies

try:
    program = studies.program()
except FileNotFoundError as error:
    sys.exit(f"thompson: {error}")
os.execv(program, [program, *sys.argv[1:]])
