"""`python -m deskwire` and the `deskwire` script."""

import os

from deskwire.cli import cli


def main() -> None:
    """Run the command line and exit with its status."""
    os.umask(0o077)  # whatever a command leaves on the disk is its user's alone
    cli(prog_name="deskwire")


if __name__ == "__main__":
    main()
