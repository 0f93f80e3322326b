"""The newest versions of the dependencies that the bounds of pyproject.toml allow, by uv."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

LOCKS: Final = ("run.txt", "extra-postgres.txt", "extra-s3.txt")
"""The locks of a user's installation."""
TOOLS: Final = "dev.txt"
"""The lock with the tools of the tests, which keep their versions."""
_PIN: Final = re.compile(r"^([a-z0-9.-]+)==([^\s;\\]+)", re.MULTILINE)
_UNREACHED: Final = re.compile(
    r"error sending request|Failed to (?:fetch|download)|dns error|timed out|HTTP status (?:client|server) error"
    r"|was not found in the package registry"
)


class IndexUnreached(Exception):
    """The package index gave no answer; the text is the last line of uv's report."""


class InstallationFailed(Exception):
    """The bounds contradict each other, or a package can't be installed; the text is uv's report."""


def pinned(root: Path, locks: Iterable[str]) -> dict[str, str]:
    """Return the versions in some locks of a repository, by name."""
    texts = [(root / "requirements" / lock).read_text() for lock in locks]
    return dict(pin for text in texts for pin in _PIN.findall(text))


def newest(root: Path, more: Sequence[str] = ()) -> dict[str, str]:
    """Return the versions that an installation without the locks takes today, by name.

    Args:
        root: the folder of pyproject.toml.
        more: further arguments for uv, for example another index.

    Raises:
        IndexUnreached: the index can't be asked.
        InstallationFailed: no versions fit all bounds.
    """
    command = [
        "pip",
        "compile",
        "-q",
        "--no-header",
        "--no-annotate",
        "--python",
        sys.executable,
        "--all-extras",
    ]
    return dict(_PIN.findall(uv(*command, *more, str(root / "pyproject.toml"))))


def changes(locked: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Return a line for each package that is not the locked one; a package that the locks leave out is none."""
    return [
        f"{name} {version} (locked: {locked[name]})"
        for name, version in sorted(found.items())
        if name in locked and version != locked[name]
    ]


def tools(root: Path) -> str:
    """Return the pins of the tests' tools as constraints, without those of the dependencies."""
    free = pinned(root, LOCKS)
    return "".join(f"{name}=={at}\n" for name, at in pinned(root, [TOOLS]).items() if name not in free)


def uv(*arguments: str) -> str:
    """Run uv and return its output. Raises IndexUnreached or InstallationFailed."""
    command = [str(Path(sys.executable).with_name("uv")), *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return run.stdout
    report = run.stderr.strip()
    if _UNREACHED.search(report):
        raise IndexUnreached(report.splitlines()[-1].strip())
    raise InstallationFailed(report)
