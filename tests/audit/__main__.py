"""`make audit`: check the pins against public advisories. Any finding fails, and so does a pin that was not checked.

If no advisory source can be reached, it reports that and fails; with `--where-reached` it reports that and goes on.
Arguments after `--` are passed to pip-audit, for example to use another source.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.audit.verdict import Asked, BadExceptions, asked, pardons, verdict

ROOT: Final = Path(__file__).parents[2]
QUIET: Final = ("--progress-spinner", "off", "--format", "json")
UNREACHED: Final = "not audited: no advisory source could be reached"


def main(arguments: Sequence[str]) -> int:
    """Audit; the exit status: 0 if nothing is known against any pin."""
    parser = argparse.ArgumentParser(prog="make audit", description=__doc__)
    parser.add_argument("--where-reached", action="store_true")
    parser.add_argument("--locks", type=Path, default=ROOT / "requirements", help="folder of the locks")
    parser.add_argument("--exceptions", type=Path, default=Path(__file__).with_name("exceptions.toml"))
    parser.add_argument("--tool", default=f"{sys.executable} -m pip_audit", help="pip-audit's command")
    parser.add_argument("more", nargs="*")
    given = parser.parse_args(arguments)
    try:
        excused = pardons(given.exceptions, datetime.now(UTC).date())
    except BadExceptions as error:
        print(f"{given.exceptions}: {error}")
        return 1
    judged = verdict(list(_answers(given.locks, given.tool.split(), given.more)), excused)
    if not judged.reached:
        print(UNREACHED)
        return 0 if given.where_reached else 1
    for line in judged.passed:
        print(line)
    for line in judged.wrong:
        print(line, file=sys.stderr)
    print(f"{judged.packages} packages audited, {len(judged.wrong)} objections")
    return 1 if judged.wrong else 0


def _answers(locks: Path, tool: Sequence[str], more: Sequence[str]) -> Iterator[Asked]:
    """Yield the tool's result for each lock, up to the first for which no source was reached."""
    for lock in sorted(locks.glob("*.txt")):
        command = [*tool, *QUIET, "--require-hashes", "--disable-pip", "--requirement", str(lock), *more]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        answer = asked(run.returncode, run.stdout, run.stderr)
        yield answer
        if answer.unreached:
            return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
