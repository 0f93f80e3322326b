"""The headers of a request, and the client's address behind proxies (ADR 25).

`X-Forwarded-For` is trusted as far as trusted proxies have written it: read from its end, the first address
that is not a trusted proxy's is the client's. Entries before it may have been written by the client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, Protocol

from msgspec import Struct

from deskwire.engine.core.errors import HEADER, BadRequest, Problem


class Fields(Protocol):
    """The headers of a request by their names in small letters (RFC 9110 5.1)."""

    def get(self, key: str, /) -> str | None:
        """Return the first value of the name.

        Returns None without one.
        """

    def getlist(self, key: str, /) -> Sequence[str]:
        """Return all values of the name in their order."""


class PlainFields(Struct):
    """The `Fields` of a request that the fast path has read.

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


def single_value(headers: Fields, name: str) -> str | None:
    """Return the value of a header that may occur once.

    Returns None without it.

    Raises BadRequest (`repeated_header`) for two values: a proxy may have checked one of them, and the
    service would use the other (CWE-444).

    Args:
        name: in small letters.
    """
    values = headers.getlist(name)
    if len(values) < 2:
        return values[0] if values else None
    message = f"The header `{name.title()}` is given more than once."
    raise BadRequest(
        message, code="repeated_header", problems=(Problem(f"{HEADER}{name.title()}", "repeated", message),)
    )


# ASCII is a subset of UTF-8 (RFC 8259 8.1).
_UTF_8: Final = frozenset({"utf-8", "utf8", "us-ascii"})


@lru_cache(maxsize=256)  # clients send one or two values all the time
def unsupported_charset(content_type: str) -> str | None:
    """Return the first `charset` of a `Content-Type` other than UTF-8.

    Returns None if there is none.
    """
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        charset = value.strip().strip('"')
        if name.strip().lower() == "charset" and charset.lower() not in _UTF_8:
            return charset
    return None


@lru_cache(maxsize=256)  # clients send one or two values all the time
def mimetype_of(content_type: str | None) -> str:
    """Return a `Content-Type` without its parameters, in small letters."""
    return (content_type or "").partition(";")[0].strip().lower()


Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


def client_address(peer: str | None, forwarded_for: Sequence[str], trusted: Sequence[Network]) -> str | None:
    """Return the address of the client that sent the request.

    Args:
        peer: address of the connection's other end, None if there is none.
        forwarded_for: the values of `X-Forwarded-For`, in the order of the headers.
        trusted: networks of the proxies.

    Returns the last trusted proxy's own address if it does not report its client.
    """
    if not (trusted and forwarded_for):
        return _normal(peer)
    nearest = _address(peer or "")
    if nearest is None:
        return peer
    hops = [hop for value in forwarded_for for hop in value.split(",")]
    while hops and is_trusted(nearest, trusted):
        further = _address(hops.pop())
        if further is None:
            break
        nearest = further
    return str(nearest)


@lru_cache(maxsize=1024)  # a client's address is the same in each of its calls
def _normal(peer: str | None) -> str | None:
    """Return an address in its canonical form.

    None and malformed addresses are returned unchanged.
    """
    address = _address(peer or "")
    return peer if address is None else str(address)


def is_trusted(address: Address | str | None, trusted: Sequence[Network]) -> bool:
    """Return whether an address belongs to a trusted proxy."""
    known = _address(address or "") if isinstance(address, str | None) else address
    return known is not None and any(known in network for network in trusted)


@lru_cache(maxsize=1024)  # a client's address is the same in each of its calls
def _address(text: str) -> Address | None:
    """Parse an address as written by proxies: maybe in brackets, maybe with a port.

    IPv4-mapped addresses become IPv4.
    """
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address
