"""Environment variables besides the settings, and those that are unknown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from deskwire.config.parsers import PREFIX

CLIENT_VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "DESKWIRE_URL": "Base URL of the service that commands about a project talk to, such as `webhook` and `listen`.",
        "DESKWIRE_KEY": "Server key with which they do; it is never shown.",
        "DESKWIRE_CACERT": "File with the authorities that they verify the service with; unset: the public ones.",
    }
)
"""Variables that are no settings of the server, by name, with their meaning; the server leaves them alone."""


def unknown(variables: Iterable[str], settings: frozenset[str]) -> Iterator[str]:
    """Yield a sentence about each `DESKWIRE_` variable that does not exist.

    Args:
        variables: names of variables, those of other programs among them.
        settings: the names that are settings.
    """
    known = settings | CLIENT_VARIABLES.keys()
    for variable in sorted(variables):
        if variable.startswith(PREFIX) and variable not in known:
            names = {name.removeprefix(PREFIX): name for name in known}
            close = difflib.get_close_matches(variable.removeprefix(PREFIX), names, n=1)
            hint = f"; did you mean {names[close[0]]}?" if close else "; `deskwire config` lists them all"
            yield f"{variable} is not a setting{hint}"
