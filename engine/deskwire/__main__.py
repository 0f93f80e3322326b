"""`python -m deskwire` and the `deskwire` script."""

import os
import sys

from deskwire.cli import cli


def main() -> None:
    """Run the command line and exit with its status."""
    _have_standard_streams()
    os.umask(0o077)  # whatever a command leaves on the disk is its user's alone
    cli(prog_name="deskwire")


def _have_standard_streams() -> None:
    """Give what was closed to nowhere: a file or socket of ours under its number would get what is written there."""
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(spare)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


if __name__ == "__main__":
    main()
