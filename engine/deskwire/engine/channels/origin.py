"""Origins of websites, and the patterns that a channel allows.

A pattern is an origin (RFC 6454) in its usual form, one with `*.` in front of the host, or a loopback origin. Patterns match as
host sources of a Content-Security-Policy do, so that the header `frame-ancestors` of the panel allows the same pages.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

import httpx
from msgspec import Struct

ORIGIN_LENGTH_MAX: Final = 300
"""Characters of an origin: a host name of 253, a scheme, a port, and some."""

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_LOCALHOST: Final = "localhost"
_ANY_LABEL: Final = "*."
_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_PORT_MAX: Final = 65_535
_HOST_LENGTH_MAX: Final = 253
_WILDCARD_LABELS_MIN: Final = 2
_FORMS: Final = (
    "An origin is written https://shop.example, https://shop.example:8443 or https://*.shop.example."
)


class Origin(Struct, frozen=True):
    """The scheme, host and port of a website, or a pattern of some.

    Args:
        host: in lower case and ASCII, an IPv6 address in brackets.
        port: None matches any port.
        subdomains: whether it matches all names below the host, and not the host itself.
    """

    scheme: str
    host: str
    port: int | None
    subdomains: bool = False

    @property
    def text(self) -> str:
        """The usual form, without the default port."""
        port = "" if self.port in (None, DEFAULT_PORTS[self.scheme]) else f":{self.port}"
        return f"{self.scheme}://{_ANY_LABEL if self.subdomains else ''}{self.host}{port}"

    @property
    def frame_source(self) -> str:
        """The same as a host source of a Content-Security-Policy, where a missing port is the default one."""
        return f"{self.text}:*" if self.port is None else self.text

    @property
    def loopback(self) -> bool:
        """True if the host is this machine itself."""
        return is_loopback(self.host)

    def matches(self, other: Origin) -> bool:
        """Return whether the pattern matches this origin."""
        if self.scheme != other.scheme or self.port not in (None, other.port):
            return False
        return other.host.endswith(f".{self.host}") if self.subdomains else self.host == other.host


def is_loopback(host: str) -> bool:
    """Return whether a host name or address, an IPv6 address in brackets, is this machine itself."""
    if host == _LOCALHOST or host.endswith(f".{_LOCALHOST}"):  # RFC 6761, 6.3
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def parse_origin(text: str) -> Origin | None:
    """Parse the value of a browser's `Origin` header. Return None for `null` and for text that is no origin."""
    found = _split(text)
    if isinstance(found, str) or found.subdomains:
        return None
    return found


def parse_pattern(text: str) -> Origin | str:
    """Parse an origin that a channel allows. Return its problem as a sentence if it is none.

    Plain http is only for loopback hosts. There a missing port means any port, because development servers choose theirs.
    """
    found = _split(text)
    if isinstance(found, str):
        return found
    if found.scheme == "http" and not found.loopback:
        return "Plain http is only for localhost, 127.0.0.1 and [::1]: other pages must be served by https."
    if found.subdomains:
        if _address(found.host) is not None:
            return "An address has no subdomains: name the address alone."
        if len(found.host.split(".")) < _WILDCARD_LABELS_MIN and not found.loopback:
            return "After `*.` comes a domain of your own, as in https://*.shop.example."
    return Origin(found.scheme, found.host, None, found.subdomains) if _any_port(text, found) else found


def _any_port(text: str, found: Origin) -> bool:
    """Return whether the port is left out and the host is loopback."""
    return found.loopback and re.search(r":\d+$", text) is None


def _split(text: str) -> Origin | str:
    """Return the parts of an origin, or the problem of the text as a sentence."""
    if len(text) > ORIGIN_LENGTH_MAX:
        return f"It has {len(text):,} characters; an origin has at most {ORIGIN_LENGTH_MAX}."
    if any(not character.isprintable() or character.isspace() for character in text):
        return "It contains blanks or control characters."
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in DEFAULT_PORTS:
        return f"It must begin with https://. {_FORMS}"
    if set(rest) & set("/?#@\\"):
        return f"It must end after the host and port, without user, path, query and fragment. {_FORMS}"
    subdomains = rest.startswith(_ANY_LABEL)
    try:
        url = httpx.URL(f"{scheme}://{rest.removeprefix(_ANY_LABEL)}")
        # The dot at the end is the root of names, which changes no host.
        host = url.raw_host.decode("ascii").lower().removesuffix(".")
    except (httpx.InvalidURL, UnicodeError):
        return f"Its host or port can't be read. {_FORMS}"
    address = _bare_address(host)
    if isinstance(address, IPv6Address):
        host = f"[{address}]"
    elif not _valid_name(host):
        return f"Its host is no valid name or address. {_FORMS}"
    port = DEFAULT_PORTS[scheme] if url.port is None else url.port
    if not 0 < port <= _PORT_MAX:
        return f"Its port must be between 1 and {_PORT_MAX}."
    return Origin(scheme, host, port, subdomains)


def _valid_name(host: str) -> bool:
    return 0 < len(host) <= _HOST_LENGTH_MAX and all(map(_LABEL.fullmatch, host.split(".")))


def _address(host: str) -> IPv4Address | IPv6Address | None:
    return _bare_address(host.removeprefix("[").removesuffix("]"))


def _bare_address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    # A zone may be any text, even one that ends the directive of a policy. Origins have none (WHATWG URL).
    return None if isinstance(address, IPv6Address) and address.scope_id else address
