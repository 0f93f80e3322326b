"""`python -m deskwire` and the `deskwire` script."""

from deskwire.cli import cli


def main() -> None:
    """Run the command line and exit with its status."""
    cli(prog_name="deskwire")


if __name__ == "__main__":
    main()
