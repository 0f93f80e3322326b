"""Several nodes on one PostgreSQL, everything that can go wrong with them, and the question whether every promise was kept.

`make chaos ARGS="--seconds 3600 --seed 7"`; the exit status is 0 if they were.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

import structlog
import trio

from tests.chaos.run import Run


def main() -> int:
    """Run it and print what came of it; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long things go wrong")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--sqlite", action="store_true", help="one node on SQLite, for the harness itself")
    parser.add_argument("--asynchronous", action="store_true", help="commits do not wait for the standby")
    parser.add_argument("--directory", type=Path, help="where all is kept; a passing one if not given")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("warning"))  # the receivers' own
    with tempfile.TemporaryDirectory(prefix="deskwire-chaos-") as passing:
        directory = given.directory or Path(passing)
        directory.mkdir(exist_ok=True)
        directory.chmod(0o755)
        run = Run(
            directory,
            given.seed,
            seconds=given.seconds,
            nodes=given.nodes,
            sqlite=given.sqlite,
            synchronous=not given.asynchronous,
        )
        report = trio.run(run.run)
    print(report)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
