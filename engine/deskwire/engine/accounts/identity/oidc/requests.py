"""Requests for a sign-in at a provider, between the start in a browser and the provider's answer.

The browser keeps a secret in a cookie, and carries the `state` to the provider and back. The store has only hashes of both.
Nonce and PKCE verifier are derived from the cookie's secret, so an answer is of use to the browser that began alone: neither a
link with another's answer (login CSRF) nor a leaked URL with code and state signs anyone in.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Collection
from typing import Final, Literal, Protocol
from urllib.parse import unquote

from msgspec import Struct

REQUEST_LIFETIME_MS: Final = 600_000
_BYTES: Final = 32
SLOTS: Final = ("0", "1", "2", "3")
"""A browser may have this many requests at once, in different tabs. Each has its own cookie."""
BROWSER_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_STATE: Final = re.compile(r"[0-3][A-Za-z0-9_-]{43}")
RETURN_TO_MAX: Final = 1_000
DESK: Final = "/desk"
_OWN_PAGE: Final = re.compile(
    r"/desk(?:[/?#][!#-\[\]-~]*)?"
)  # visible ASCII without quotation mark and backslash

Purpose = Literal["sign_in", "proof"]
"""`proof`: the user of a session proves again who uses it."""


class OidcRequest(Struct, frozen=True):
    """A request as it is stored. Times are in milliseconds.

    Args:
        state: SHA-256 of the state.
        browser: SHA-256 of the secret in the browser's cookie.
        provider: name of the provider that was asked, for the check that no other one answers.
        return_to: own page to show after the sign-in.
        session: id of the browser's session at the start: to be replaced, or to be proved. The callback has no such cookie,
            because browsers leave it out of requests that another site leads to.
    """

    state: bytes
    browser: bytes
    provider: str
    purpose: Purpose
    return_to: str
    session: str | None
    created_at: int
    expires_at: int


class NewRequest(Struct, frozen=True):
    """The secrets of a new request. `slot` selects the cookie."""

    slot: str
    browser: str
    state: str


class OidcRequestTransaction(Protocol):
    """Changes of requests."""

    def insert_oidc_request(self, request: OidcRequest) -> None:
        """Store a request."""

    def take_oidc_request(self, state: bytes) -> OidcRequest | None:
        """Delete and return the request with this SHA-256 of its state, expired ones included. None without one."""

    def prune_oidc(self, now: int, limit: int) -> int:
        """Delete up to `limit` expired requests, and as many remembered logout tokens. Return the number deleted."""


def new_request(taken: Collection[str]) -> NewRequest:
    """Return the secrets of a new request, in the first slot that is not taken, or a random one."""
    free = [slot for slot in SLOTS if slot not in taken]
    slot = free[0] if free else secrets.choice(SLOTS)
    return NewRequest(slot, secrets.token_urlsafe(_BYTES), slot + secrets.token_urlsafe(_BYTES))


def hash_secret(secret: str) -> bytes:
    """Return the SHA-256 of a state or a browser's secret. It needs no salt because both are random."""
    return hashlib.sha256(secret.encode()).digest()


def slot_of(state: str | None) -> str | None:
    """Return the slot of a state, None for a text that is none."""
    return None if state is None or _STATE.fullmatch(state) is None else state[0]


def nonce_of(browser: str, state: str) -> str:
    """Return the nonce of a request."""
    return _derived(browser, "nonce", state)


def verifier_of(browser: str, state: str) -> str:
    """Return the PKCE verifier of a request (RFC 7636)."""
    return _derived(browser, "verifier", state)


def challenge_of(verifier: str) -> str:
    """Return the PKCE challenge of a verifier, by the method S256."""
    return _base64url(hashlib.sha256(verifier.encode()).digest())


def is_answered(request: OidcRequest | None, browser: str | None, now: int) -> bool:
    """Return whether an answer belongs to a request that has not expired, of the browser that brings the answer."""
    return (
        request is not None
        and browser is not None
        and hmac.compare_digest(request.browser, hash_secret(browser))
        and now < request.expires_at
    )


def own_page(given: str | None) -> str:
    """Return the page to show after the sign-in: the given one if it is a page of the desk, else the desk."""
    if given is None or len(given) > RETURN_TO_MAX or _OWN_PAGE.fullmatch(given) is None:
        return DESK
    # Browsers resolve `..` also where it is percent-encoded.
    path = unquote(re.split(r"[?#]", given, maxsplit=1)[0])
    return DESK if path == f"{DESK}/" or {".", ".."} & set(path.split("/")) else given


def _derived(browser: str, what: str, state: str) -> str:
    return _base64url(hmac.digest(browser.encode(), f"{what} {state}".encode(), "sha256"))


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
