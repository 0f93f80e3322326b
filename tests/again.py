"""Runs pytest, then the failed tests again, alone: for tests whose processes, browsers and databases share few cores.

`python -m tests.again ARGS` takes pytest's arguments. A test that fails twice fails the run. One that passes the second time is
named at the end, with both outputs above it, so that its cause can be looked for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

FAILED: Final = Path(".pytest_cache/v/cache/lastfailed")
"""The names of the tests that failed, as pytest keeps them."""
TESTS_FAILED: Final = 1
"""Pytest's exit code when tests failed; the others are for runs that could not be carried out."""


def main(arguments: list[str]) -> int:
    """Return the exit code of the run, or of the second run with its failed tests. Only CI runs a test twice."""
    FAILED.unlink(missing_ok=True)
    code = _pytest(arguments)
    if code != TESTS_FAILED or os.environ.get("CI") != "true" or not FAILED.exists():
        return code
    failed = sorted(json.loads(FAILED.read_text()))
    print(f"\n== once more by themselves: {len(failed)} that failed", flush=True)
    code = _pytest([*arguments, "-n", "0", "--last-failed", "--last-failed-no-failures", "none"])
    if code == 0:
        for name in failed:
            print(f"FLAKY: {name} failed, and passed by itself", flush=True)
    return code


def _pytest(arguments: list[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
