"""Metadata of an OpenID provider (OpenID Connect Discovery 1.0, RFC 8414), checked before any of it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

DISCOVERY_PATH: Final = "/.well-known/openid-configuration"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_URL_MAX: Final = 2_000


class BadMetadata(Exception):
    """Metadata that can't be used. The text gives the reason."""


class Metadata(Struct, frozen=True):
    """The metadata of a provider.

    Args:
        token_by_post: whether the client's secret is sent in the body of token requests instead of a header.
        names_issuer: whether answers of the provider name their issuer (RFC 9207).
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    token_by_post: bool = False
    names_issuer: bool = False


def discovery_url(issuer: str) -> str:
    """Return the URL of an issuer's metadata. A final slash of the issuer is left out (Discovery 4.1)."""
    return issuer.rstrip("/") + DISCOVERY_PATH


def checked_metadata(document: Mapping[str, Any], issuer: str) -> Metadata:
    """Return the metadata in a document.

    Raises BadMetadata unless the issuer is exactly the configured one and every endpoint is https (http on this machine only
    for an issuer that is so, too), so that a provider can't direct requests to a plain address of the service's network.
    """
    if document.get("issuer") != issuer:
        raise BadMetadata(
            f"its issuer is not {issuer}; the setting must be exactly the provider's own spelling"
        )
    plain = urlsplit(issuer).scheme == "http"
    urls = {name: document.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")}
    userinfo = document.get("userinfo_endpoint")
    if userinfo is not None:
        urls["userinfo_endpoint"] = userinfo
    bad = [name for name, url in urls.items() if not _is_usable(url, plain=plain)]
    if bad:
        raise BadMetadata(f"not an https URL: {', '.join(bad)}")
    methods = document.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    if not isinstance(methods, list):
        raise BadMetadata("token_endpoint_auth_methods_supported is not a list")
    return Metadata(
        issuer,
        **{name: str(url) for name, url in urls.items()},
        token_by_post="client_secret_basic" not in methods and "client_secret_post" in methods,
        names_issuer=document.get("authorization_response_iss_parameter_supported") is True,
    )


def _is_usable(url: object, *, plain: bool) -> bool:
    """Return whether an endpoint can be used. `plain` allows http on this machine."""
    if (
        not isinstance(url, str)
        or len(url) > _URL_MAX
        or not url.isascii()
        or not url.isprintable()
        or " " in url
    ):
        return False
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # unbalanced brackets, or an invalid port
        return False
    if not host or port == 0 or parts.fragment or parts.username is not None:
        return False
    return parts.scheme == "https" or (plain and parts.scheme == "http" and host in _LOOPBACK)
