"""The files that an image is built from, in one archive: `docker build - < FILE` reads it."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

IN_IMAGE: Final = ("LICENSE", "README.md", "SOURCE", ".dockerignore", "pyproject.toml", "docs/deploy")
IN_IMAGE_FOLDERS: Final = ("engine", "http", "release", "requirements", "storage")


def image_context(tree: Path, target: Path) -> None:
    """Write the archive that an image is built from: `docker build - < FILE` reads it. The Dockerfile is also at its root."""
    files = {**dict(_in_image(tree)), "Dockerfile": tree / "docs/deploy/Dockerfile"}
    raw = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, path in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = path.stat().st_size, 0o755 if path.stat().st_mode & 0o100 else 0o644
            archive.addfile(entry, io.BytesIO(path.read_bytes()))
    target.write_bytes(raw.getvalue())


def _in_image(tree: Path) -> Iterator[tuple[str, Path]]:
    for path in tree.rglob("*"):
        name = path.relative_to(tree).as_posix()
        if "__pycache__" in path.parts:  # left over from the build
            continue
        if path.is_file() and (name.startswith(IN_IMAGE) or name.split("/")[0] in IN_IMAGE_FOLDERS):
            yield name, path
