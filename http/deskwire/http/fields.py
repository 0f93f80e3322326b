"""The headers of a request, whoever has read them from the connection."""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Sequence
from typing import Final, Protocol


class Fields(Protocol):
    """What is asked of a request's headers; names in whatever case (RFC 9110 5.1)."""

    def get(self, key: str, /) -> str | None:
        """The first value of the name, None without one."""

    def getlist(self, key: str, /) -> Sequence[str]:
        """All values of the name, in the order in which they came."""


class PlainFields:
    """`Fields` of a request that no framework has read.

    Args:
        pairs: names and their values.
    """

    __slots__ = ("_values",)

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values: Final[dict[str, list[str]]] = {}
        for name, value in pairs:
            self._values.setdefault(name.lower(), []).append(value)

    @property
    def names(self) -> KeysView[str]:
        """The names that came, in small letters."""
        return self._values.keys()

    def get(self, key: str, /) -> str | None:
        """See `Fields`."""
        values = self._values.get(key.lower())
        return values[0] if values else None

    def getlist(self, key: str, /) -> Sequence[str]:
        """See `Fields`."""
        return self._values.get(key.lower(), ())
