"""Runs a server's command with a planted bug: `python -m tests.plants.serving BUG python -m deskwire serve …`."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence


def serving(bug: str) -> Sequence[str]:
    """Return a command prefix that starts the server with this bug, empty without a bug (`wrapped` of `Server`)."""
    return (sys.executable, "-m", "tests.plants.serving", bug) if bug else ()


def main() -> None:
    """Plant the bug and run the command in this process."""
    from tests.plants.plants import planted  # here, so that tools can import `serving` without the service

    bug, _, option, module, *arguments = sys.argv[1:]
    assert option == "-m", f"this is no `python -m`: {sys.argv}"
    with planted(bug):
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
