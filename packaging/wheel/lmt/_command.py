"""The command ``lmt`` of an environment: the program that the wheel carries."""

import os
import sys

from lmt import command


def main():
    """Becomes that program. Does not return."""
    # Called by its whole name it means the MPI of its own environment.
    if sys.prefix != sys.base_prefix:
        os.environ.setdefault("VIRTUAL_ENV", sys.prefix)
    os.execv(str(command), [str(command), *sys.argv[1:]])
