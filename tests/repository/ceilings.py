"""Ceilings of counts, each kept in a file of the repository; a ceiling may only fall."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping

from tests.support.root import ROOT


def read(file: str) -> dict[str, int]:
    """Return the ceilings in a file, by the names of the counts."""
    return _parsed((ROOT / file).read_text())


def committed(file: str) -> list[dict[str, int]]:
    """Return the ceilings of the last two commits that changed the file, newest first; fewer in a shallow clone."""
    listed = git("log", "-2", "--first-parent", "--format=%H", "--", file).split()
    return [_parsed(git("show", f"{commit}:{file}")) for commit in listed]


def _parsed(text: str) -> dict[str, int]:
    found: dict[str, int] = json.loads(text)
    return found


def above(counts: Mapping[str, int], limits: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that exceed their ceiling, with the excess; the ceiling of a new count is 0."""
    return {
        name: count - limits.get(name, 0) for name, count in counts.items() if count > limits.get(name, 0)
    }


def loose(counts: Mapping[str, int], limits: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that are more than 3 and more than 2 % below their ceiling."""
    low = {name: counts.get(name, 0) for name in limits}
    return {name: count for name, count in low.items() if limits[name] - count > max(3, limits[name] // 50)}


def raised(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return the ceilings that are higher than before."""
    return {name: limit for name, limit in after.items() if name in before and limit > before[name]}


def lower(file: str, counts: Mapping[str, int]) -> dict[str, int]:
    """Write the ceilings that can fall, and those of new counts; return the ceilings that fell."""
    limits = read(file) if (ROOT / file).exists() else {}
    now = {
        name: min(counts.get(name, 0), limits.get(name, counts.get(name, 0))) for name in {*counts, *limits}
    }
    (ROOT / file).write_text(json.dumps(now, indent=2, sort_keys=True) + "\n")
    return {name: now[name] for name, limit in limits.items() if now[name] < limit}


def git(*arguments: str) -> str:
    """Return the output of a git command in the repository."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout
