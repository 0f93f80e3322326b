"""Who may read the metrics: who has the token, or without one this machine itself (ADR 13).

A proxy on this machine makes every client look local. So a request counts as local only if nothing about it
speaks of a proxy, its peer is not trusted as one, and no public URL says that there is one.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from deskwire.engine.core.errors import Forbidden, Unauthenticated
from deskwire.http.api.input.client_address import Network, is_trusted
from deskwire.http.api.input.headers import Fields

_FORWARDED: Final = (
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "via",
)


@dataclass(frozen=True, slots=True)
class Scraping:
    """What the operator has set.

    Args:
        token: what a scraper must show; None lets this machine read without one.
        public_url: by which clients reach the service, None if it was not said.
        trusted_proxies: networks of proxies; whoever is in one may be a proxy that says nothing.
    """

    token: str | None = field(default=None, repr=False)
    public_url: str | None = None
    trusted_proxies: Sequence[Network] = ()

    def check_token(self, credential: str) -> None:
        """Raises Unauthenticated if this is not the token. Takes the same time wherever they differ."""
        assert self.token is not None, "there is a token"
        if not hmac.compare_digest(credential.encode(), self.token.encode()):
            raise Unauthenticated("This is not the metrics token.", code="invalid_metrics_token")

    def check_local(self, peer: str | None, headers: Fields) -> None:
        """Raises Forbidden unless a request from `peer`, an address, is one of this machine itself."""
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
    except ValueError:  # brackets that do not match
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
