"""Runs several nodes on one PostgreSQL under faults, and checks that every promise was kept.

`make chaos ARGS="--seconds 3600 --seed 7"`; the exit status is 0 if they were.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path

import structlog
import trio

from tests.chaos.run import Report, Run


def main() -> int:
    """Run, print the report, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long things go wrong")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--sqlite", action="store_true", help="one node on SQLite, for the harness itself")
    parser.add_argument("--asynchronous", action="store_true", help="commits do not wait for the standby")
    parser.add_argument(
        "--directory",
        type=Path,
        help="where logs and data are kept; without it, removed when every promise was kept",
    )
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("warning"))  # the receivers' own
    directory = given.directory or Path(tempfile.mkdtemp(prefix="deskwire-chaos-"))
    directory.mkdir(exist_ok=True)
    directory.chmod(0o755)
    run = Run(
        directory,
        given.seed,
        seconds=given.seconds,
        nodes=given.nodes,
        sqlite=given.sqlite,
        synchronous=not given.asynchronous,
        report=partial(print, flush=True),
    )
    try:
        report = trio.run(_stoppable, run)
    except BaseException:  # a cancelled run prints its figures, too; the exception is raised again
        print(f"the run could not be judged; until then:\n{run.seen()}\nlogs: {directory}", flush=True)
        raise
    print(report)
    if report.problems:
        print(f"logs: {directory}")
        return 1
    if given.directory is None:
        shutil.rmtree(directory)
    return 0


async def _stoppable(run: Run) -> Report:
    """Run and judge; the first Ctrl-C ends the faults, and the run is judged up to then."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_listen, run)
        report = await run.run()
        nursery.cancel_scope.cancel()
    return report


async def _listen(run: Run) -> None:
    with trio.open_signal_receiver(signal.SIGINT) as signals:
        async for _ in signals:
            break
    run.stop()  # a second Ctrl-C ends the program as usual


if __name__ == "__main__":
    sys.exit(main())
