"""``python -m infill`` is the command ``infill``."""

import os
import subprocess
import sys

from ._process import InfillError, program

if __name__ == "__main__":
    try:
        command = [program(), *sys.argv[1:]]
    except InfillError as error:
        sys.exit(f"infill: {error}")
    if sys.platform == "win32":  # where exec does not wait
        sys.exit(subprocess.run(command).returncode)
    os.execv(command[0], command)  # signals are the program's
