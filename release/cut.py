"""`make cut TO=0.2.0`: the changes of the commit that is a release; `make cut NEXT=0.3.0`: those of the commit after it.

It changes the version, the changelog, and the files that name the newest release, and commits nothing.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from release.hooks import ROOT, base_version

RELEASE: Final = re.compile(r"\d+\.\d+\.\d+")
_NAMED: Final = re.compile(r'(?<=^version = ")[^"]+(?="$)', re.MULTILINE)
_UNRELEASED: Final = "## [Unreleased]\n"
PLACES: Final = {
    "docs/deploy/kubernetes/*/kustomization.yaml": r"(?<=newTag: )\d+\.\d+\.\d+",
    "docs/guide/deploy.md": r"(?<= deskwire:)\d+\.\d+\.\d+",
}
"""The version of the newest release in files for operators: a pattern for each glob."""


class NotCut(Exception):
    """Raised if this version can't be cut; the text says why."""


def cut(root: Path, version: str, day: str) -> None:
    """Make a tree that of a release.

    Args:
        day: the date for the changelog, such as `2026-11-28`.

    Raises NotCut, and nothing is changed then.
    """
    pyproject, changelog = root / "pyproject.toml", root / "CHANGELOG.md"
    text = changelog.read_text("utf-8")
    if problems := list(_problems(base_version(pyproject.read_text("utf-8")), version, text)):
        raise NotCut("\n".join(problems))
    _set_version(pyproject, version)
    changelog.write_text(text.replace(_UNRELEASED, f"{_UNRELEASED}\n## [{version}] - {day}\n", 1), "utf-8")
    for path, pattern in _places(root):
        path.write_text(re.sub(pattern, version, path.read_text("utf-8")), "utf-8")


def begin_next(root: Path, version: str) -> None:
    """Make the tree of a release that of the first commit after it. Raises NotCut."""
    present = base_version((root / "pyproject.toml").read_text("utf-8"))
    if not RELEASE.fullmatch(version) or _order(version) <= _order(present):
        raise NotCut(f"{version} is no version after {present}")
    if ".dev" in present:
        raise NotCut(f"{present} is no release")
    _set_version(root / "pyproject.toml", f"{version}.dev0")


def named_releases(root: Path) -> dict[str, set[str]]:
    """Return the versions that the files for operators name, by path."""
    return {
        path.relative_to(root).as_posix(): set(re.findall(pattern, path.read_text("utf-8")))
        for path, pattern in _places(root)
    }


def _problems(present: str, version: str, changelog: str) -> Iterator[str]:
    if not RELEASE.fullmatch(version):
        yield f"{version!r} is no version such as 0.2.0"
    elif present != f"{version}.dev0":
        yield f"the version in pyproject.toml is {present}, and this release needs {version}.dev0"
    unreleased = changelog.partition(_UNRELEASED)[2].partition("\n## ")[0]
    if not unreleased.strip():
        yield "CHANGELOG.md has no entries under Unreleased"


def _places(root: Path) -> Iterator[tuple[Path, str]]:
    for glob, pattern in PLACES.items():
        for path in sorted(root.glob(glob)):
            yield path, pattern


def _set_version(pyproject: Path, version: str) -> None:
    text, count = _NAMED.subn(version, pyproject.read_text("utf-8"))
    assert count == 1, "one line of pyproject.toml names the version"
    pyproject.write_text(text, "utf-8")


def _order(version: str) -> list[int]:
    return [int(each) for each in RELEASE.match(version)[0].split(".")]  # type: ignore[index]


def main(arguments: Sequence[str]) -> int:
    """Change the files; the exit status is 1 if the version can't be cut."""
    parser = argparse.ArgumentParser(prog="python -m release.cut", description=__doc__)
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--version", help="the version to release")
    given.add_argument("--next", help="the version after the released one")
    options = parser.parse_args(arguments)
    try:
        if options.version is not None:
            cut(ROOT, options.version, datetime.now(UTC).date().isoformat())
        else:
            begin_next(ROOT, options.next)
    except NotCut as error:
        print(f"Nothing was changed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
