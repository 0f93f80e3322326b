"""Connections to the configured OpenID providers, and the addresses that they may lead the service to.

The operator chooses the issuer's host, which may be in a private network. Other hosts are named by the provider's metadata,
so they follow the address rules of webhooks: a provider can't use the service to reach its network.
"""

from __future__ import annotations

from functools import partial
from ipaddress import ip_network
from typing import Final
from urllib.parse import urlsplit

import httpx

from deskwire.config.config import Config
from deskwire.config.oidc import OidcProvider
from deskwire.engine.accounts.identity.oidc.provider import ProviderConnection, Providers, Registration
from deskwire.engine.webhooks.http.address import (
    AddressPolicy,
    AddressRefused,
    ResolutionFailed,
    SystemResolver,
    check_addresses,
)
from deskwire.http.api.auth.oidc import CALLBACK_PATH, OidcSignIns
from deskwire.program.errors import StartError

_LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
_CONNECTIONS: Final = httpx.Limits(max_connections=20, max_keepalive_connections=0)


class GuardedTransport(httpx.AsyncBaseTransport):
    """Sends requests to the issuer's host, and to checked addresses of other hosts.

    The connection goes to the address that was checked, so a name that changes its address in between gains nothing.

    Args:
        host: the issuer's host.
        policy: addresses that other hosts may have.
        inner: sends the requests.
    """

    def __init__(self, host: str, policy: AddressPolicy, inner: httpx.AsyncBaseTransport) -> None:
        self._host = host
        self._policy = policy
        self._inner = inner
        self._resolve = SystemResolver()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Raises httpx.ConnectError for an address that is refused."""
        host = request.url.host
        if host.lower() == self._host:
            return await self._inner.handle_async_request(request)
        try:
            addresses = await self._resolve(host, request.url.port or 443)
            check_addresses(self._policy, addresses)
        except (AddressRefused, ResolutionFailed, OSError) as error:
            raise httpx.ConnectError(f"{host}: {error}", request=request) from error
        if not addresses:
            raise httpx.ConnectError(f"{host} has no address", request=request)
        request.url = request.url.copy_with(host=str(addresses[0]))
        request.extensions = {**request.extensions, "sni_hostname": host}
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


def oidc_sign_ins(config: Config, url: str) -> OidcSignIns:
    """Return the sign-ins at the configured providers. Nothing is fetched yet.

    Args:
        url: the URL of this service for browsers.

    Raises StartError if the file of a client's secret can't be read.
    """
    connections = [
        ProviderConnection(_client(each), partial(_http, config, each.issuer))
        for each in config.oidc_providers
    ]
    return OidcSignIns(Providers(connections), url + CALLBACK_PATH)


def _client(settings: OidcProvider) -> Registration:
    return Registration(
        settings.name,
        settings.label,
        settings.issuer,
        settings.client_id,
        _secret(settings),
        settings.scopes,
        settings.role_claim,
        settings.roles,
        settings.organisation,
        settings.second_factor,
    )


def _secret(settings: OidcProvider) -> str | None:
    file = settings.client_secret_file
    if file is None:
        return None
    try:
        secret = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(
            f"The client secret of the OpenID provider {settings.name}, {file}, can't be read: {error}."
        ) from error
    if not secret or not secret.isprintable():
        raise StartError(
            f"The client secret of the OpenID provider {settings.name}, {file}, is not one line of text."
        )
    return secret


def _http(config: Config, issuer: str) -> httpx.AsyncClient:
    parts = urlsplit(issuer)
    allowed = config.webhook_allow if parts.scheme == "https" else (*config.webhook_allow, *_LOOPBACK)
    policy = AddressPolicy(allow=allowed, allow_private=config.allow_private_webhooks)
    trust = httpx.create_ssl_context()  # heeds SSL_CERT_FILE, for a private authority
    inner = httpx.AsyncHTTPTransport(verify=trust, trust_env=False, limits=_CONNECTIONS)
    transport = GuardedTransport(parts.hostname or "", policy, inner)
    return httpx.AsyncClient(transport=transport, timeout=None, trust_env=False, follow_redirects=False)
