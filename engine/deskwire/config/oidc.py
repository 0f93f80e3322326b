"""Identity providers for sign-in with OpenID Connect: one in the short form, more by their names.

`DESKWIRE_OIDC_ISSUER` belongs to the provider `oidc`, `DESKWIRE_OIDC_STAFF_ISSUER` to the provider `staff`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from deskwire.config.parsers import PREFIX, flag, issuer_url, path, role_rules, scopes, words
from deskwire.engine.accounts.identity.oidc.role_rules import ANY_VALUE, RoleRule

SHORT_NAME: Final = "oidc"
DEFAULT_SCOPES: Final = ("openid", "email", "profile")
DEFAULT_LABEL: Final = "Company account"
PARSERS: Final = {
    "issuer": issuer_url,
    "client_id": words,
    "client_secret_file": path,
    "scopes": scopes,
    "role_claim": words,
    "roles": role_rules,
    "label": words,
    "organisation": words,
    "second_factor": flag,
}
_NAMED: Final = re.compile(
    rf"{PREFIX}OIDC_([A-Z][A-Z0-9_]{{0,30}}?)_({'|'.join(name.upper() for name in PARSERS)})"
)


@dataclass(frozen=True, kw_only=True)
class OidcProvider:
    """The settings of one provider."""

    name: str
    issuer: str
    client_id: str
    client_secret_file: Path | None = None
    scopes: tuple[str, ...] = DEFAULT_SCOPES
    role_claim: str | None = None
    roles: tuple[RoleRule, ...] = ()
    label: str = DEFAULT_LABEL
    organisation: str | None = None
    second_factor: bool = False


def is_named(variable: str) -> bool:
    """Return whether a variable belongs to a provider with a name."""
    return _NAMED.fullmatch(variable) is not None


def named_values(environ: Mapping[str, str]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the values of providers with a name, by name and setting, and a sentence for each bad value."""
    found: dict[str, dict[str, Any]] = {}
    bad = []
    for variable in sorted(environ):
        match = _NAMED.fullmatch(variable)
        if match is None or not environ[variable]:
            continue
        name, setting = match[1].lower(), match[2].lower()
        values = found.setdefault(name, {})
        try:
            values[setting] = PARSERS[setting](environ[variable])
        except ValueError as error:
            values[setting] = None
            bad.append(f"{variable} {error}")
    return found, bad


def provider_problems(name: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each contradiction between the settings of one provider."""

    def variable(setting: str) -> str:
        return variable_of(name, setting)

    missing = [variable(each) for each in ("issuer", "client_id") if each not in values]
    if missing:
        yield f"{variable(next(iter(values)))} needs {' and '.join(missing)}"
    rules: Sequence[RoleRule] = values.get("roles") or ()
    if values.get("role_claim") and "roles" not in values:
        yield f"{variable('role_claim')} has no effect without {variable('roles')}"
    if any(rule.value != ANY_VALUE for rule in rules) and "role_claim" not in values:
        yield f"{variable('roles')} needs {variable('role_claim')}, unless its only rule is for everyone (*)"


def variable_of(name: str, setting: str) -> str:
    """Return the variable of a provider's setting."""
    middle = "" if name == SHORT_NAME else f"{name.upper()}_"
    return f"{PREFIX}OIDC_{middle}{setting.upper()}"
