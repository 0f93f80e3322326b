"""The kinds of credentials as far as their form tells them, so that a refusal can say which was shown and which is needed."""

from __future__ import annotations

import re
from typing import Final

from deskwire.engine.accounts.machines import SECRET_PREFIX
from deskwire.engine.accounts.server_keys import KEY_PREFIX
from deskwire.engine.core.errors import Forbidden, Unauthenticated
from deskwire.http.api.routing import Access

WRONG_KIND: Final = "wrong_credential_kind"

_FORMS: Final = (
    ("server key", re.compile(rf"{KEY_PREFIX}\S+")),
    ("machine credential", re.compile(rf"{SECRET_PREFIX}\S+")),
    ("webhook's signing secret", re.compile(r"whsec_\S+")),
    ("access token", re.compile(r"eyJ[\w-]*\.[\w-]*\.[\w-]*")),
    ("stream authorization", re.compile(r"[0-9A-Za-z]{8,40}:eyJ[\w-]*\.[\w-]*\.[\w-]*")),
)
"""The kinds, each with the form by which it is told from all others."""

_S2S: Final = frozenset({"server key", "machine credential"})
_PEOPLE: Final = frozenset({"access token", "machine credential"})
_FITTING: Final = {"server_key": _S2S, "either": _S2S | _PEOPLE}
_NEEDED: Final = {
    "server_key": "a server key (sk_…) or a machine credential (mk_…)",
    "either": "a server key (sk_…), a machine credential (mk_…) or the access token of a user",
}


def kind_of(credential: str) -> str | None:
    """Return the kind of a credential by its form; None for what has the form of none."""
    return next((kind for kind, form in _FORMS if form.fullmatch(credential)), None)


def check_kind(access: Access, credential: str) -> None:
    """Raise Unauthenticated (`wrong_credential_kind`) for a credential of a kind that the route never takes.

    One whose form tells nothing is left to whoever checks it. The refusal has nothing of the credential in it.
    """
    kind = kind_of(credential)
    if kind is None or kind in _FITTING.get(access.kind, _PEOPLE):
        return
    raise Unauthenticated(
        f"{'An' if kind[0] == 'a' else 'A'} {kind} was shown, and this call needs {_needed(access)}.",
        code=WRONG_KIND,
    )


def _needed(access: Access) -> str:
    said = _NEEDED.get(access.kind)
    if said is not None:
        return said
    machine = " or a machine credential (mk_…)" if access.machines else ""
    return f"the access token or session of a user{machine}"


def server_key_required() -> Forbidden:
    """Return the refusal of a machine where no permission says what it may do."""
    return Forbidden(
        "A machine credential was shown, and this call needs a server key (sk_…).", code=WRONG_KIND
    )
