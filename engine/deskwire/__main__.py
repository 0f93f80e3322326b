"""`python -m deskwire` and the `deskwire` script."""

import os
import sys

from deskwire.cli import cli


def main() -> None:
    """Run the command line and exit with its status."""
    _have_standard_streams()
    os.umask(0o077)  # files of any command are private to its user
    cli(prog_name="deskwire")


def _have_standard_streams() -> None:
    """Open closed standard streams on /dev/null, so that none of our files or sockets gets their numbers."""
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(spare)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


if __name__ == "__main__":
    main()
