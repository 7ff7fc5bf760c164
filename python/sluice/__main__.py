"""`python -m sluice ...` is `sluice ...`, the command line tool."""

import os
import sys

from .tuning import executable


def main() -> None:
    try:
        program = executable()
    except RuntimeError as error:
        sys.exit(f"python -m sluice: {error}")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
