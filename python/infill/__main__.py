"""``python -m infill`` is the command ``infill``."""

import subprocess
import sys

from ._process import program

if __name__ == "__main__":
    sys.exit(subprocess.run([program(), *sys.argv[1:]]).returncode)
