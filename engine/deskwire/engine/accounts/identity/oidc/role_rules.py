"""Rules that map a claim of an identity provider to a role.

Separate from the checks of tokens so that the settings do not import cryptography.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

ANY_VALUE: Final = "*"
VALUES_MAX: Final = 1_000
"""Maximum number of values of a claim that are looked at. Companies with more groups filter them at the provider."""


class RoleRule(Struct, frozen=True):
    """A value of the role claim, or ANY_VALUE for everyone, and the role that it gives."""

    value: str
    role: str


def value_at(claims: Mapping[str, Any], path: str) -> object:
    """Return the claim at a path, None if there is none.

    A claim whose name is the whole path comes first, because some providers use URLs as names. Else a dot descends into
    an object.
    """
    if path in claims:
        return claims[path]
    value: object = claims
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value


def mapped_role(claims: Mapping[str, Any], path: str | None, rules: Sequence[RoleRule]) -> str | None:
    """Return the role of the first rule that matches the claims, None if none does.

    The claim at `path` is a text or a list of texts. Values of other types are ignored.
    """
    found = None if path is None else value_at(claims, path)
    listed = found[:VALUES_MAX] if isinstance(found, list) else [found]
    values = {each for each in listed if isinstance(each, str)}
    return next((rule.role for rule in rules if rule.value == ANY_VALUE or rule.value in values), None)
