"""The origin of the page that makes a request, and whether it is our own (ADR 15).

A browser says it in `Sec-Fetch-Site`, which no page can write; over plain HTTP it does not, and `Origin` has to do. Ours is
the public URL's, and the one in the browser's address bar, which is `Host`: a cookie that a browser sends was set by the
host that it sends it to, so a name that somebody else has pointed here brings no session along.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from deskwire.engine.core.errors import Forbidden
from deskwire.http.api.input.headers import Fields

_SAME: Final = "same-origin"
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@lru_cache(maxsize=16)
def origin_of(url: str | None) -> str | None:
    """Return the origin of a URL as browsers write it; None for None."""
    if url is None:
        return None
    parts = urlsplit(url)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{shown}{port}"


def is_own(origin: str, headers: Fields, public: str | None, *, secure: bool) -> bool:
    """Tell whether an `Origin` is ours.

    Args:
        public: the origin of the public URL, if that is set.
        secure: whether the request came by TLS.
    """
    host = headers.getlist("host")
    here = f"{'https' if secure else 'http'}://{host[0].lower()}" if len(host) == 1 else None
    return origin in (public, here)


def require_own_page(headers: Fields, public: str | None, *, secure: bool) -> None:
    """Raise Forbidden (`cross_site_request`) unless the browser says that a page of ours makes the request."""
    sites, origins = headers.getlist("sec-fetch-site"), headers.getlist("origin")
    if sites:
        if [*sites] != [_SAME]:
            raise _refusal("`Sec-Fetch-Site` is not `same-origin`.")
    elif len(origins) != 1:
        raise _refusal(
            "It has neither `Sec-Fetch-Site` nor `Origin`; use an access token outside of a browser."
        )
    elif not is_own(origins[0], headers, public, secure=secure):
        raise _refusal("`Origin` is not that of this service; is DESKWIRE_PUBLIC_URL right?")


def _refusal(reason: str) -> Forbidden:
    return Forbidden(
        f"A cookie changes something only for a page of this very origin. {reason}", code="cross_site_request"
    )
