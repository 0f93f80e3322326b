"""Access to the metrics (ADR 13).

The bearer of the metrics token may read them, or without a token this machine only. Behind a proxy on this
machine every client looks local. So a request counts as local only if it has no header of a proxy, its peer
is not a trusted proxy, and no public URL is set that implies a proxy.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from deskwire.engine.core.errors import Forbidden, Unauthenticated
from deskwire.http.api.input.headers import Fields, Network, is_trusted

_FORWARDED: Final = (
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "via",
)


@dataclass(frozen=True, slots=True)
class ScrapeAccess:
    """The operator's settings for scrapes.

    Args:
        token: the token of a scraper; None lets this machine read without one.
        public_url: the URL by which clients reach the service, None if it is not set.
        trusted_proxies: networks of proxies; a peer in one of them may be a proxy that adds no header.
    """

    token: str | None = field(default=None, repr=False)
    public_url: str | None = None
    trusted_proxies: Sequence[Network] = ()

    def check_token(self, credential: str) -> None:
        """Raise Unauthenticated for a wrong token. The comparison takes constant time."""
        assert self.token is not None, "there is a token"
        if not hmac.compare_digest(credential.encode(), self.token.encode()):
            raise Unauthenticated("This is not the metrics token.", code="invalid_metrics_token")

    def check_local(self, peer: str | None, headers: Fields) -> None:
        """Raise Forbidden unless the request comes from this machine.

        `peer` is the address of the connection's other end.
        """
        public = self.public_url is not None and not _is_loopback(urlsplit(self.public_url).hostname)
        proxied = is_trusted(peer, self.trusted_proxies) or any(headers.getlist(name) for name in _FORWARDED)
        if public or proxied or not _is_loopback(peer) or not _is_loopback(_host(headers.get("host") or "")):
            raise Forbidden(
                "Without DESKWIRE_METRICS_TOKEN only this machine itself may read the metrics.",
                code="metrics_local_only",
            )


def _host(header: str) -> str | None:
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:  # unbalanced brackets
        return None


def _is_loopback(host: str | None) -> bool:
    if host is None:
        return False
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
