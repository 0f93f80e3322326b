"""The build that is running: its version, and the commit that it was made from.

A wheel, and what is made of one, has a file with its commit beside this module (`release/hooks.py`). A checkout has no
such file; the commit that is checked out is read from its `.git`, without starting git.
"""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path
from typing import Final

UNKNOWN: Final = "unknown"
"""The commit where nothing tells it, such as in a build of sources without their history."""
_HERE: Final = Path(__file__).parent
_CHECKOUT: Final = Path(__file__).parents[3]
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?(?:-dirty)?")


def version() -> str:
    """Return the version of the installed distribution."""
    return importlib.metadata.version("deskwire")


def commit(built: Path = _HERE / "commit", checkout: Path = _CHECKOUT) -> str:
    """Return the commit that this was built from, in full, or `unknown`.

    Args:
        built: the file that a build leaves.
        checkout: the folder that is asked where there is no such file. Changes that are not committed don't show.
    """
    said = _line(built) if built.is_file() else _checked_out(checkout / ".git")
    return said if _COMMIT.fullmatch(said) else UNKNOWN


def notices(built: Path = _HERE / "notices.txt") -> str:
    """Return the licences of everything in the executable; elsewhere, a sentence that says where they are."""
    if built.is_file():
        return built.read_text("utf-8")
    return (
        "Deskwire is under the Apache License 2.0. Its libraries are installed beside it, each with its licence in its "
        "folder *.dist-info.\n"
    )


def _checked_out(git: Path) -> str:
    """Return the commit that HEAD names (gitrepository-layout(5)), or "" where that can't be told."""
    if git.is_file():  # of a worktree
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
    """Return a file's first line, or "" if there is no such file."""
    return path.read_text("utf-8").partition("\n")[0].strip() if path.is_file() else ""
