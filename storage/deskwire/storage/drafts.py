"""Drafts of files that are kept elsewhere than on a node's own disk: received into memory, or a nameless file if they are larger."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from typing import IO, Final

from deskwire.engine.uploads.ports import FileContent

IN_MEMORY: Final = 1 << 20
"""Bytes up to which a draft stays in memory."""

Put = Callable[[FileContent, IO[bytes], int], None]
"""A function that stores a file, of so many bytes, from its beginning; nothing happens if it is stored already."""


class SpooledDraft:
    """`uploads.ports.Draft` that `put` takes to its place. The system removes it with the process, however that ends."""

    def __init__(self, put: Put) -> None:
        self._put = put
        self._hash = sha256()
        self._file = SpooledTemporaryFile[bytes](max_size=IN_MEMORY)  # closed by `discard`
        self._size = 0

    def write(self, data: bytes) -> None:
        """See `Draft.write`."""
        self._hash.update(data)
        self._file.write(data)
        self._size += len(data)

    def finish(self) -> str:
        """See `Draft.finish`."""
        return self._hash.hexdigest()

    def keep(self, content: FileContent) -> None:
        """See `Draft.keep`."""
        self._file.seek(0)
        self._put(content, self._file, self._size)

    def discard(self) -> None:
        """See `Draft.discard`."""
        self._file.close()
