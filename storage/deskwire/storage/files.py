"""The files of uploads on disk. Each content is stored once in a project, under its SHA-256.

Stored files are `uploads/<project>/<aa>/<sha256>`; `uploads/drafts/` has files that are being received or removed. A
file is written and synced there and then renamed, so a file with its final name is always complete.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from deskwire.engine.uploads.ports import FileContent

FOLDER: Final = "uploads"
_DRAFTS: Final = "drafts"
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_ZEROS: Final = bytes(1 << 18)
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class DiskDraft:
    """Implements `uploads.ports.FileDraft` as a file."""

    def __init__(self, path: Path, place: Callable[[FileContent], Path]) -> None:
        self._path = path
        self._place = place
        self._file: int | None = os.open(path, _NEW, 0o600)
        self._hash = sha256()

    def write(self, data: bytes) -> None:
        """See `FileDraft.write`."""
        assert self._file is not None, "the draft is not finished"
        self._hash.update(data)
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]

    def finish(self) -> str:
        """See `FileDraft.finish`."""
        assert self._file is not None, "a draft is finished once"
        os.fsync(self._file)
        self._close()
        return self._hash.hexdigest()

    def keep(self, content: FileContent) -> None:
        """See `FileDraft.keep`."""
        place = self._place(content)
        for folder in (place.parent.parent, place.parent):
            folder.mkdir(exist_ok=True, mode=0o700)
            sync(folder.parent)
        if not place.exists():
            self._path.rename(place)
        sync(place.parent)  # even if the file existed: the sync after its creation may have failed

    def discard(self) -> None:
        """See `FileDraft.discard`."""
        self._close()
        overwrite_and_unlink(self._path)

    def _close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            os.close(file)


class DiskFiles:
    """Implements `uploads.ports.Files` in a directory."""

    def __init__(self, directory: Path) -> None:
        self._root = directory / FOLDER
        self._drafts = self._root / _DRAFTS

    def clear_drafts(self) -> None:
        """See `Files.clear_drafts`."""
        self._drafts.mkdir(parents=True, exist_ok=True, mode=0o700)
        sync(self._root.parent)
        for path in self._drafts.iterdir():
            overwrite_and_unlink(path)

    def draft(self) -> DiskDraft:
        """See `Files.draft`."""
        return DiskDraft(self._aside(), self.place)

    def size(self, content: FileContent) -> int | None:
        """See `Files.size`."""
        try:
            return self.place(content).stat().st_size
        except FileNotFoundError:
            return None

    def read(self, content: FileContent, start: int, length: int) -> bytes:
        """See `Files.read`."""
        file = os.open(self.place(content), os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(file, length, start)
        finally:
            os.close(file)

    def remove(self, content: FileContent) -> None:
        """See `Files.remove`. The file is renamed first, so that a file with a final name is always complete."""
        place, aside = self.place(content), self._aside()
        try:
            place.rename(aside)
        except FileNotFoundError:
            return
        sync(place.parent)
        overwrite_and_unlink(aside)
        for folder in (place.parent, place.parent.parent):
            with suppress(OSError):  # another content is there
                folder.rmdir()

    def contents(self) -> Iterator[FileContent]:
        """See `Files.contents`."""
        for project in self._root.glob("*"):  # nothing, if nothing was ever uploaded
            if project.name.isdecimal():
                for path in project.glob("*/*"):
                    if _SHA256.fullmatch(path.name):
                        yield FileContent(int(project.name), path.name)

    def close(self) -> None:
        """See `Files.close`. Nothing is."""

    def place(self, content: FileContent) -> Path:
        """Return the path of a content that is kept."""
        return self._root / str(content.project) / content.sha256[:2] / content.sha256

    def _aside(self) -> Path:
        return self._drafts / secrets.token_hex(16)


def overwrite_and_unlink(path: Path) -> None:
    """Remove a file, its blocks zeroed as far as the file system writes in place; nothing if there is none."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        left = os.fstat(file).st_size
        while left > 0:
            left -= os.write(file, _ZEROS[:left] if left < len(_ZEROS) else _ZEROS)
        os.fsync(file)
    finally:
        os.close(file)
        path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
