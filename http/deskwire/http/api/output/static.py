"""Bytes that do not change while the service runs: packed once, sent again only to those who lack them."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Final, Generic, TypeVar

import trio
from werkzeug.http import parse_etags

_TAG_CHARACTERS: Final = 16
T = TypeVar("T")


_PIECE: Final = 64 * 1024
"""Bytes that are sent at a time; a client that does not read holds no more of its own."""


@dataclass(frozen=True)
class Static:
    """A document of some type; `packed` is its gzip form, `tag` names its content."""

    content_type: str
    packed: bytes
    tag: str

    @classmethod
    def of(cls, content_type: str, body: bytes) -> Static:
        """The document with this content."""
        return cls(content_type, gzip.compress(body, mtime=0), sha256(body).hexdigest()[:_TAG_CHARACTERS])

    @classmethod
    def of_packed(cls, content_type: str, packed: bytes) -> Static:
        """The document whose gzip form this is."""
        return cls(content_type, packed, sha256(gzip.decompress(packed)).hexdigest()[:_TAG_CHARACTERS])

    @cached_property
    def body(self) -> bytes:
        """The content; kept from the first time on that a client can't unpack it."""
        return gzip.decompress(self.packed)

    def known_to(self, tags: str | None) -> bool:
        """Tell whether a client that sends these tags as `If-None-Match` has the content (RFC 9110 section 13.1.2)."""
        return parse_etags(tags).contains_weak(self.tag)


class Once(Generic[T]):
    """A value that takes a moment to make: made when it is first asked for, in a thread, and kept."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None
        self._making = trio.Lock()

    async def get(self) -> T:
        """Return it."""
        if self._made is None:
            async with self._making:  # however many ask first, it is made once
                if self._made is None:
                    self._made = await trio.to_thread.run_sync(self._make)
        return self._made


async def pieces(shared: bytes) -> AsyncIterator[bytes]:
    """Bytes that many clients are sent, one part after the other."""
    for begin in range(0, len(shared), _PIECE):
        yield shared[begin : begin + _PIECE]
