"""The headers of a request, whoever has read them from the connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Protocol

from msgspec import Struct

from deskwire.engine.core.errors import HEADER, BadRequest, Problem


class Fields(Protocol):
    """The headers of a request by their names in small letters; they came in whatever case (RFC 9110 5.1)."""

    def get(self, key: str, /) -> str | None:
        """Return the first value of the name; None without one."""

    def getlist(self, key: str, /) -> Sequence[str]:
        """Return all values of the name, in the order in which they came."""


class PlainFields(Struct):
    """The `Fields` of a request that no framework has read.

    Args:
        values: the values of each name, in small letters.
    """

    values: Mapping[str, Sequence[str]]

    def get(self, key: str, /) -> str | None:
        """See `Fields`."""
        values = self.values.get(key)
        return values[0] if values else None

    def getlist(self, key: str, /) -> Sequence[str]:
        """See `Fields`."""
        return self.values.get(key, ())


def single(headers: Fields, name: str) -> str | None:
    """Return the value of a header that may come once; None without it.

    Of two, a proxy may have checked the one and the service would take the other (CWE-444), so both are refused.

    Args:
        name: in small letters.

    Raises BadRequest (`repeated_header`).
    """
    values = headers.getlist(name)
    if len(values) < 2:
        return values[0] if values else None
    message = f"The header `{name.title()}` is given more than once."
    raise BadRequest(
        message, code="repeated_header", problems=(Problem(f"{HEADER}{name.title()}", "repeated", message),)
    )


_UTF_8: Final = frozenset({"utf-8", "utf8", "us-ascii"})
"""The names of what is read, as RFC 8259 8.1 has it: ASCII is a part of it."""


@lru_cache(maxsize=256)  # as below
def foreign_charset(content_type: str) -> str | None:
    """Return the first `charset` of a `Content-Type` that is another one than UTF-8; None if there is none."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        charset = value.strip().strip('"')
        if name.strip().lower() == "charset" and charset.lower() not in _UTF_8:
            return charset
    return None


@lru_cache(maxsize=256)  # clients write the same one or two all the time
def mimetype_of(content_type: str | None) -> str:
    """Return a `Content-Type` without its parameters, in small letters."""
    return (content_type or "").partition(";")[0].strip().lower()
