"""The cookie of a browser's session: its two names, how it is read, set and taken back (RFC 6265).

`__Host-` has browsers see to it that only this host sets the cookie, by TLS alone. Over plain HTTP they refuse that name,
so a service without TLS has another one; each service reads only its own.
"""

from __future__ import annotations

from typing import Final

from deskwire.engine.accounts.sessions import SESSION_SECRET
from deskwire.engine.core.errors import Unauthenticated
from deskwire.http.api.input.headers import Fields

PLAIN: Final = "deskwire"
SECURE: Final = f"__Host-{PLAIN}"


def session_cookie(headers: Fields, *, secure: bool) -> str | None:
    """Return the session's secret that the request's cookies have; None without one.

    Raises Unauthenticated (`bad_session_cookie`) for what is none, and for two that differ: another page of the host
    may have set one of them.
    """
    name = _name(secure)
    pairs = (pair.partition("=") for line in headers.getlist("cookie") for pair in line.split(";"))
    given = {content.strip() for key, _, content in pairs if key.strip() == name}
    if not given:
        return None
    if len(given) > 1:
        raise Unauthenticated(
            f"The request has two different cookies named {name}; delete this site's cookies and sign in again.",
            code="bad_session_cookie",
        )
    (secret,) = given
    if SESSION_SECRET.fullmatch(secret) is None:
        raise Unauthenticated(
            f"The cookie {name} is none of this service; sign in again.", code="bad_session_cookie"
        )
    return secret


def setting(secret: str, lasts_s: int, *, secure: bool) -> str:
    """Return the `Set-Cookie` that gives a browser its session's secret.

    Args:
        lasts_s: seconds for which the browser keeps it at most; the service decides whether it is still good.
    """
    return f"{_name(secure)}={secret}; Max-Age={lasts_s}; {_attributes(secure)}"


def taking_back(*, secure: bool) -> str:
    """Return the `Set-Cookie` that has a browser forget its session."""
    return f"{_name(secure)}=; Max-Age=0; {_attributes(secure)}"


def _name(secure: bool) -> str:
    return SECURE if secure else PLAIN


def _attributes(secure: bool) -> str:
    return f"Path=/; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}"
