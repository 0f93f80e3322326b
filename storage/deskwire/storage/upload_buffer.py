"""Upload buffers for files that are not stored on the node's disk: in memory or, if larger, in an unnamed file."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from typing import IO, Final

from deskwire.engine.uploads.ports import FileContent

IN_MEMORY: Final = 1 << 20
"""Maximum bytes of a buffer in memory."""

Put = Callable[[FileContent, IO[bytes], int], None]
"""Stores a file of the given size, from the start of the stream; does nothing if it is stored already."""


class UploadBuffer:
    """Implements `uploads.ports.FileDraft` with `put`. The operating system removes the buffer when the process ends."""

    def __init__(self, put: Put) -> None:
        self._put = put
        self._hash = sha256()
        self._file = SpooledTemporaryFile[bytes](max_size=IN_MEMORY)  # closed by `discard`
        self._size = 0

    def write(self, data: bytes) -> None:
        """See `FileDraft.write`."""
        self._hash.update(data)
        self._file.write(data)
        self._size += len(data)

    def finish(self) -> str:
        """See `FileDraft.finish`."""
        return self._hash.hexdigest()

    def keep(self, content: FileContent) -> None:
        """See `FileDraft.keep`."""
        self._file.seek(0)
        self._put(content, self._file, self._size)

    def discard(self) -> None:
        """See `FileDraft.discard`."""
        self._file.close()
