"""The running build: its version and commit.

A wheel has a file with its commit in `deskwire/program` (`release/hooks.py`). In a checkout, which has no such file,
the commit is read from `.git` without starting git.
"""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Final

UNKNOWN: Final = "unknown"  # the commit of a build from sources without history
_PROGRAM: Final = Path(__file__).parents[2] / "program"
_CHECKOUT: Final = Path(__file__).parents[4]
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?(?:-dirty)?")


@cache
def version(built: Path = _PROGRAM / "commit", checkout: Path = _CHECKOUT) -> str:
    """Return the version of the running build, such as `0.2.0`, or `0.2.0.dev0+g0123456789ab` between releases.

    A build has it in its metadata. An editable installation would keep the commit of the day it was installed, so
    the version of a checkout is read from its files, once in a process.

    Args:
        built: the file written by a build.
        checkout: the folder to read without that file.

    Raises importlib.metadata.PackageNotFoundError if neither a checkout nor an installation is found.
    """
    sources = checkout / "pyproject.toml"
    if built.is_file() or not sources.is_file():
        return importlib.metadata.version("deskwire")
    base: str = tomllib.loads(sources.read_text("utf-8"))["tool"]["deskwire"]["version"]
    return versioned(base, commit(built, checkout))


def versioned(base: str, commit: str) -> str:
    """Return a version with its commit, if it is a development version and the commit is known (PEP 440).

    `release/hooks.py` has the same rule for builds.
    """
    if ".dev" not in base or commit == UNKNOWN:
        return base
    return f"{base}+g{commit[:12]}{'.dirty' if commit.endswith('-dirty') else ''}"


def commit(built: Path = _PROGRAM / "commit", checkout: Path = _CHECKOUT) -> str:
    """Return the full hash of the build's commit, or `unknown`.

    Args:
        built: the file written by a build.
        checkout: the folder to read without that file. Uncommitted changes are not detected.
    """
    found = _line(built) if built.is_file() else _checked_out(checkout / ".git")
    return found if _COMMIT.fullmatch(found) else UNKNOWN


def notices(built: Path = _PROGRAM / "notices.txt") -> str:
    """Return the licences in the executable; elsewhere, a sentence about their location."""
    if built.is_file():
        return built.read_text("utf-8")
    return (
        "Deskwire is under the Apache License 2.0. Its libraries are installed beside it, each with its licence in its "
        "folder *.dist-info.\n"
    )


def _checked_out(git: Path) -> str:
    """Return the commit of HEAD (gitrepository-layout(5)), "" if it can't be found."""
    if git.is_file():  # in a worktree
        git = git.parent / _line(git).removeprefix("gitdir: ")
    head = _line(git / "HEAD")
    if not head.startswith("ref: "):
        return head
    name = head.removeprefix("ref: ")
    shared = git / (_line(git / "commondir") or ".")
    return _line(git / name) or _line(shared / name) or _packed(shared / "packed-refs", name)


def _packed(refs: Path, name: str) -> str:
    for line in refs.read_text("utf-8").splitlines() if refs.is_file() else ():
        if line.endswith(f" {name}"):
            return line.partition(" ")[0]
    return ""


def _line(path: Path) -> str:
    """Return a file's first line, "" for a missing file."""
    return path.read_text("utf-8").partition("\n")[0].strip() if path.is_file() else ""
