"""The comparison of two builds, and the digests with which others can verify them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

SUMS: Final = "SHA256SUMS"


def differences(one: Path, other: Path) -> list[str]:
    """Return the names of files that are not the same bytes in both folders."""
    names = {path.name for folder in (one, other) for path in folder.iterdir()}
    return [
        f"two builds of the same commit differ in {name}"
        for name in sorted(names)
        if _bytes(one / name) != _bytes(other / name)
    ]


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def sums(folder: Path) -> str:
    """Return the digest of each file in a folder, in the form that sha256sum(1) reads."""
    files = sorted(path for path in folder.iterdir() if path.name != SUMS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
