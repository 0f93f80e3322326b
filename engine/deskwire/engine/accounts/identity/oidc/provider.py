"""A connection to one OpenID provider: its metadata and keys, fetched when they are first needed, and its token endpoint.

An unreachable provider stops nothing but sign-ins with it. The last good metadata and keys stay in use while fetches fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

import httpx
import structlog
import trio
from msgspec import Struct

from deskwire.engine.accounts.identity.oidc.answers import (
    ProviderRefusal,
    ProviderUnreachable,
    answer_of,
)
from deskwire.engine.accounts.identity.oidc.metadata import (
    BadMetadata,
    Metadata,
    checked_metadata,
    discovery_url,
)
from deskwire.engine.accounts.identity.oidc.role_rules import RoleRule, value_at
from deskwire.engine.accounts.identity.oidc.tokens import (
    BadToken,
    ExpectedToken,
    LogoutToken,
    checked_id_token,
    checked_logout_token,
)
from deskwire.engine.accounts.identity.provider_keys import UrlKeys
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.tasks.failure import run_with_restarts

log: Final = structlog.get_logger(__name__)

METADATA_REFRESH_S: Final = 3_600.0
METADATA_KEEP_S: Final = 86_400.0
"""Time that the last good metadata and keys are used while fetches fail."""
RETRY_INTERVAL_S: Final = 5.0
"""Minimum interval between two fetches of the metadata after a failure."""
KEYS_REFRESH_S: Final = 600.0
_SENT_MAX: Final = 8_192  # characters of an access token that is sent on to the userinfo endpoint


class Registration(Struct, frozen=True):
    """The registration of this service at a provider.

    Args:
        name: name of the provider in settings and URLs.
        label: name of the provider on the page for signing in.
        secret: None for a public client.
        role_claim, roles: see `mapped_role`.
        organisation: id or name of the organisation to which the provider belongs; None for the only one.
        second_factor: whether the provider vouches for a second factor.
    """

    name: str
    label: str
    issuer: str
    client_id: str
    secret: str | None
    scopes: tuple[str, ...]
    role_claim: str | None
    roles: Sequence[RoleRule]
    organisation: str | None
    second_factor: bool


class ProviderConnection:
    """The connection to one provider.

    Args:
        client: the registration at the provider.
        connect: returns an HTTP client for requests to this provider.
    """

    def __init__(self, client: Registration, connect: Callable[[], httpx.AsyncClient]) -> None:
        self.client: Final = client
        self._connect = connect
        self._http: httpx.AsyncClient | None = None
        self._lock = trio.Lock()
        self._metadata: Metadata | None = None
        self._fetched = 0.0
        self._failure: tuple[float, ProviderUnreachable] | None = None
        self._nursery: trio.Nursery | None = None
        self._keys: UrlKeys | None = None
        self._keys_scope = trio.CancelScope()

    async def run(self) -> None:
        """Refresh the provider's keys after their first use, until cancelled."""
        async with self._connect() as http, trio.open_nursery() as nursery:
            self._http, self._nursery, self._keys = http, nursery, None
            await trio.sleep_forever()

    async def metadata(self) -> Metadata:
        """Return the provider's metadata. Raises ProviderUnreachable while there is none."""
        if (found := self._fresh()) is not None:
            return found
        async with self._lock:
            if (found := self._fresh()) is not None:
                return found
            now = trio.current_time()
            if self._failure is None or now - self._failure[0] >= RETRY_INTERVAL_S:
                await self._fetch(now)
            if self._metadata is not None and now - self._fetched < METADATA_KEEP_S:
                return self._metadata
            assert self._failure is not None, "a fetch without metadata has failed"
            raise self._failure[1]

    async def id_claims(
        self, code: str, redirect_uri: str, verifier: str, expected: ExpectedToken, now_s: float
    ) -> Mapping[str, Any]:
        """Return the claims of the user who signed in at the provider, in exchange for the code.

        Claims for the account and its role are fetched from the userinfo endpoint if the ID token lacks them.

        Raises ProviderUnreachable, ProviderRefusal or BadToken.
        """
        metadata = await self.metadata()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        answer = await answer_of(
            self._client(), "POST", metadata.token_endpoint, **self._authenticated(metadata, form)
        )
        token, access = answer.get("id_token"), answer.get("access_token")
        if not isinstance(token, str):
            raise BadToken("The answer has no ID token; is the scope openid granted?")
        access = access if isinstance(access, str) else None
        expected = ExpectedToken(
            expected.issuer, expected.client_id, expected.nonce, access, expected.signed_in_since
        )
        try:
            claims = await checked_id_token(token, self._verifying_keys(metadata), expected, now_s)
        except Unavailable as error:
            raise ProviderUnreachable("its keys can't be fetched") from error
        return await self._completed(claims, metadata, access)

    async def logout_token(self, token: str, now_s: float) -> LogoutToken:
        """Return the content of a logout token. Raises ProviderUnreachable or BadToken."""
        metadata = await self.metadata()
        try:
            return await checked_logout_token(
                token, self._verifying_keys(metadata), metadata.issuer, self.client.client_id, now_s
            )
        except Unavailable as error:
            raise ProviderUnreachable("its keys can't be fetched") from error

    def _fresh(self) -> Metadata | None:
        if self._metadata is not None and trio.current_time() - self._fetched < METADATA_REFRESH_S:
            return self._metadata
        return None

    async def _fetch(self, now: float) -> None:
        issuer = self.client.issuer
        try:
            document = await answer_of(self._client(), "GET", discovery_url(issuer))
            self._metadata, self._fetched, self._failure = checked_metadata(document, issuer), now, None
        except (ProviderUnreachable, ProviderRefusal, BadMetadata) as error:
            log.warning(
                "oidc.metadata_not_fetched", provider=self.client.name, issuer=issuer, reason=str(error)
            )
            self._failure = (now, ProviderUnreachable(str(error)))

    def _client(self) -> httpx.AsyncClient:
        if self._http is None:
            raise ProviderUnreachable("the service is still starting")
        return self._http

    def _verifying_keys(self, metadata: Metadata) -> UrlKeys:
        """Return the keys at the provider's current URL, whose refresh starts with their first use."""
        if self._nursery is None:
            raise ProviderUnreachable("the service is still starting")
        if self._keys is None or self._keys.url != metadata.jwks_uri:
            self._keys_scope.cancel()
            self._keys_scope = trio.CancelScope()
            self._keys = UrlKeys(
                metadata.jwks_uri, refresh_s=KEYS_REFRESH_S, keep_s=METADATA_KEEP_S, client=self._connect()
            )
            self._nursery.start_soon(_run_within, self._keys_scope, self._keys)
        return self._keys

    def _authenticated(self, metadata: Metadata, form: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments of a token request with the client's authentication (RFC 6749 2.3.1)."""
        client = self.client
        if client.secret is None:
            return {"data": {**form, "client_id": client.client_id}}
        if metadata.token_by_post:
            return {"data": {**form, "client_id": client.client_id, "client_secret": client.secret}}
        return {"data": form, "auth": (_form_encoded(client.client_id), _form_encoded(client.secret))}

    async def _completed(
        self, claims: Mapping[str, Any], metadata: Metadata, access: str | None
    ) -> Mapping[str, Any]:
        """Return the claims, with those of the userinfo endpoint if needed ones are missing."""
        needed = ["email", *([self.client.role_claim] if self.client.role_claim else [])]
        complete = all(value_at(claims, name) is not None for name in needed)
        if complete or metadata.userinfo_endpoint is None or access is None or len(access) > _SENT_MAX:
            return claims
        headers = {"Authorization": f"Bearer {access}"}
        try:
            more = await answer_of(self._client(), "GET", metadata.userinfo_endpoint, headers=headers)
        except ProviderRefusal as refusal:
            raise ProviderUnreachable(f"its userinfo endpoint refuses the token: {refusal}") from refusal
        if more.get("sub") != claims["sub"]:  # Core 5.3.2
            raise BadToken("The userinfo endpoint answers for another user (`sub`).")
        return _joined(claims, more)


class Providers:
    """The connections to all configured providers, by name, in the order of the settings."""

    def __init__(self, connections: Sequence[ProviderConnection] = ()) -> None:
        self._by_name = {each.client.name: each for each in connections}

    @property
    def clients(self) -> Sequence[Registration]:
        """The registrations at all providers."""
        return [each.client for each in self._by_name.values()]

    def named(self, name: str) -> ProviderConnection | None:
        """Return the provider with this name."""
        return self._by_name.get(name)

    def of_issuer(self, issuer: str) -> ProviderConnection | None:
        """Return the provider with exactly this issuer."""
        return next((each for each in self._by_name.values() if each.client.issuer == issuer), None)

    async def run(self) -> None:
        """Keep all connections until cancelled."""
        async with trio.open_nursery() as nursery:
            for each in self._by_name.values():
                nursery.start_soon(run_with_restarts, "identity.oidc", each.run)
            await trio.sleep_forever()


class ProviderRequest(Struct, frozen=True):
    """The values of a request that the browser carries to the provider.

    Args:
        challenge: SHA-256 of the PKCE verifier (S256).
        again: whether the user must sign in again although the provider knows the browser.
    """

    state: str
    nonce: str
    challenge: str
    redirect_uri: str
    again: bool


def authorization_url(metadata: Metadata, client: Registration, request: ProviderRequest) -> str:
    """Return the URL of the provider's page for signing in (Core 3.1.2.1, RFC 7636)."""
    values = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": request.redirect_uri,
        "scope": " ".join(client.scopes),
        "state": request.state,
        "nonce": request.nonce,
        "code_challenge": request.challenge,
        "code_challenge_method": "S256",
        **({"max_age": "0"} if request.again else {}),
    }
    mark = "&" if "?" in metadata.authorization_endpoint else "?"
    return metadata.authorization_endpoint + mark + urlencode(values)


async def _run_within(scope: trio.CancelScope, keys: UrlKeys) -> None:
    with scope:
        await run_with_restarts("identity.oidc_keys", keys.run)


_ABOUT_EMAIL: Final = ("email", "email_verified", "xms_edov")


def _joined(claims: Mapping[str, Any], more: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the claims of the ID token with those of the userinfo endpoint.

    An address and the claim that it is verified never come from different sources, unless both have the same address.
    """
    if claims.get("email") is None:
        claims = {name: value for name, value in claims.items() if name not in _ABOUT_EMAIL}
    elif claims["email"] != more.get("email"):
        more = {name: value for name, value in more.items() if name not in _ABOUT_EMAIL}
    return {**more, **claims}


def _form_encoded(value: str) -> str:
    return quote(value, safe="")
