"""The comparison of two hosts by site, which decides whether a frame keeps its storage.

Browsers compare registrable domains by the Public Suffix List. This rule has no list: it answers only where a list could not
change the answer, or where one of the suffixes below applies, and `unknown` for the rest.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final, Literal

SameSite = Literal["yes", "no", "unknown"]

# Second levels under which countries register names, such as co.uk and com.br.
_SECOND_LEVELS: Final = frozenset(
    {
        "ac",
        "co",
        "com",
        "edu",
        "gob",
        "gov",
        "gv",
        "id",
        "ltd",
        "me",
        "mil",
        "net",
        "nom",
        "or",
        "org",
        "plc",
        "sch",
    }
    | {"ad", "ed", "go", "gr", "lg", "ne", "asn", "nhs", "police"}
)
# Hosting services whose customers are sites of their own.
_HOSTING: Final = frozenset(
    {
        "appspot.com",
        "azurewebsites.net",
        "blogspot.com",
        "firebaseapp.com",
        "fly.dev",
        "github.io",
        "gitlab.io",
        "herokuapp.com",
        "netlify.app",
        "onrender.com",
        "pages.dev",
        "railway.app",
        "surge.sh",
        "vercel.app",
        "web.app",
        "workers.dev",
    }
)
_COUNTRY_LENGTH: Final = 2


def same_site(first: str, second: str) -> SameSite:
    """Return whether two host names or addresses, in lower case, have the same registrable domain."""
    if first == second:
        return "yes"
    if _is_address(first) or _is_address(second):
        return "no"
    common = _common_labels(first, second)
    if len(common) < 2:
        return "no"  # a registrable domain has two labels at least
    shared = ".".join(common)
    if shared in _HOSTING or (len(common) == 2 and _is_country_suffix(*common)):
        return "no"
    if ".".join(common[-2:]) in _HOSTING or len(common) > 2 or len(common[-1]) > _COUNTRY_LENGTH:
        return "yes"
    # Below a country the second level may be a suffix that is not among those above.
    return "unknown" if len(common[0]) <= _COUNTRY_LENGTH + 1 else "yes"


def _common_labels(first: str, second: str) -> list[str]:
    """Return the labels at the end of both names."""
    common: list[str] = []
    for one, other in zip(reversed(first.split(".")), reversed(second.split(".")), strict=False):
        if one != other:
            break
        common.insert(0, one)
    return common


def _is_country_suffix(second_level: str, top_level: str) -> bool:
    return len(top_level) == _COUNTRY_LENGTH and second_level in _SECOND_LEVELS


def _is_address(host: str) -> bool:
    try:
        ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
