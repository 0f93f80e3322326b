"""Sign-ins at OpenID providers: the providers, the cookie that binds a request to its browser, and counters."""

from __future__ import annotations

from typing import Final

import trio
from msgspec import Struct, field

from deskwire.engine.accounts.identity.oidc.provider import Providers
from deskwire.engine.accounts.identity.oidc.requests import BROWSER_SECRET, REQUEST_LIFETIME_MS, SLOTS
from deskwire.engine.accounts.identity.start_throttle import StartThrottle
from deskwire.http.api.input.headers import Fields

_COOKIE: Final = "deskwire-oidc-"
CALLBACK_PATH: Final = "/v3/auth/oidc/callback"


class OidcSignIns(Struct):
    """The sign-ins at OpenID providers.

    Args:
        redirect_uri: the URL of the callback, exactly as it is registered at the providers.
        results: number of finished sign-ins by provider and result: `signed_in`, `proved` or an error code.
        logouts: number of accepted back-channel logouts by provider.
        starts: limits the sign-ins that are begun.
    """

    providers: Providers
    redirect_uri: str
    starts: StartThrottle = field(default_factory=lambda: StartThrottle(trio.current_time))
    results: dict[tuple[str, str], int] = field(default_factory=dict)
    logouts: dict[str, int] = field(default_factory=dict)

    def note(self, provider: str, result: str) -> None:
        """Count a finished sign-in. `provider` is the name of a configured one."""
        self.results[provider, result] = self.results.get((provider, result), 0) + 1

    def note_logout(self, provider: str) -> None:
        """Count an accepted back-channel logout."""
        self.logouts[provider] = self.logouts.get(provider, 0) + 1


def browser_secrets(headers: Fields, *, secure: bool) -> dict[str, str]:
    """Return the browser's secrets of requests under way, by slot. A repeated or malformed cookie is left out."""
    found: dict[str, list[str]] = {}
    for line in headers.getlist("cookie"):
        for pair in line.split(";"):
            name, _, value = pair.strip().partition("=")
            found.setdefault(name, []).append(value)
    named = {slot: found.get(_name(slot, secure=secure), []) for slot in SLOTS}
    return {
        slot: values[0]
        for slot, values in named.items()
        if len(values) == 1 and BROWSER_SECRET.fullmatch(values[0]) is not None
    }


def browser_cookie(slot: str, secret: str, *, secure: bool) -> str:
    """Return the `Set-Cookie` for a request.

    `SameSite=Lax`, unlike the session's cookie, because browsers leave strict ones out when the provider's page leads back.
    """
    lasts_s = REQUEST_LIFETIME_MS // 1000
    rest = f"Max-Age={lasts_s}; Path=/; HttpOnly; SameSite=Lax{'; Secure' if secure else ''}"
    return f"{_name(slot, secure=secure)}={secret}; {rest}"


def _name(slot: str, *, secure: bool) -> str:
    return f"__Host-{_COOKIE}{slot}" if secure else f"{_COOKIE}{slot}"
