"""`make newest-dependencies`: run a part of the tests with the newest dependencies that pyproject.toml allows.

The environment is made only if one of them differs from its lock, because `make test` has tried the locked ones. If the
package index can't be reached, or the tests do not end in time, that is reported and fails; with `--where-reached` it is
reported and passes.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.newest_dependencies.versions import (
    LOCKS,
    IndexUnreached,
    InstallationFailed,
    changes,
    newest,
    pinned,
    tools,
    uv,
)

ROOT: Final = Path(__file__).parents[2]
ENVIRONMENT: Final = ROOT / ".venv-newest-dependencies"
LIMIT_S: Final = 110.0
"""Seconds for all of it: CI waits for at most two minutes."""
_TOOLS: Final = ("hypothesis", "pytest", "pytest-timeout", "pytest-trio", "schemathesis", "trustme")
_TESTS: Final = (
    "tests/engine/accounts",
    "tests/engine/uploads",
    "tests/engine/surveys/themes",
    "tests/http/stream/test_frames.py",
    "tests/storage/test_writer.py",
    "tests/api/conversations/test_conversations.py",
    "tests/process/test_serve.py::test_a_signal_ends_it_in_order_with_status_0",
)
"""A few tests for each library that Deskwire imports: 20 s of processor time."""


def main(arguments: Sequence[str]) -> int:
    """Try the newest dependencies; the exit status: 0 if the tests pass or nothing is newer."""
    parser = argparse.ArgumentParser(prog="make newest-dependencies", description=__doc__)
    parser.add_argument(
        "--where-reached", action="store_true", help="pass without an index, and without time"
    )
    parser.add_argument("--always", action="store_true", help="also if the newest are the locked ones")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder of pyproject.toml and requirements")
    parser.add_argument("more", nargs="*", help="further arguments of uv")
    given = parser.parse_args(arguments)
    end = time.monotonic() + LIMIT_S
    try:
        newer = changes(pinned(given.root, LOCKS), newest(given.root, given.more))
        print("\n".join(newer) or "the newest dependencies that are allowed are the locked ones")
        return _tested(end) if newer or given.always else 0
    except IndexUnreached as error:
        print(f"skipped: the package index could not be reached: {error}")
    except subprocess.TimeoutExpired:
        print(f"skipped: the tests had not ended after {LIMIT_S:.0f} s")
    except InstallationFailed as error:
        print(f"the dependencies can't be installed:\n{error}")
        return 1
    return 0 if given.where_reached else 1


def _tested(end: float) -> int:
    python = str(ENVIRONMENT / "bin/python")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write(tools(ROOT))
        constraints.flush()
        uv("venv", "-q", "--clear", "--python", sys.executable, str(ENVIRONMENT))
        installed = ("-e", f"{ROOT}[postgres,s3]", *_TOOLS)
        uv("pip", "install", "-q", "--python", python, "-c", constraints.name, *installed)
    command = [python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    chosen = ["-m", "not long and not web and not thorough", *_TESTS]
    tests = subprocess.Popen([*command, *chosen], cwd=ROOT, start_new_session=True)
    try:
        return tests.wait(max(1.0, end - time.monotonic()))
    finally:
        if tests.poll() is None:
            os.killpg(tests.pid, signal.SIGKILL)  # with the servers that the tests have started
            tests.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
