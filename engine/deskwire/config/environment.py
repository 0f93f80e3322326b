"""Environment variables other than settings, and unknown ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from deskwire.config.parsers import PREFIX

CLIENT_VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "DESKWIRE_URL": "Base URL of the service for commands about a project, such as `webhook` and `listen`, and for the SDKs.",
        "DESKWIRE_KEY": "Server key for those commands; it is never shown.",
        "DESKWIRE_API_KEY": "Credential for the SDKs.",
        "DESKWIRE_CACERT": "File with the authorities to verify the service with; unset: the public ones.",
    }
)
"""Variables that are not settings of the server, which ignores them, with their meaning."""


def unknown(variables: Iterable[str], settings: frozenset[str]) -> Iterator[str]:
    """Yield a sentence for each unknown `DESKWIRE_` variable.

    Args:
        variables: names of variables, including those of other programs.
        settings: the names of settings.
    """
    known = settings | CLIENT_VARIABLES.keys()
    for variable in sorted(variables):
        if variable.startswith(PREFIX) and variable not in known:
            names = {name.removeprefix(PREFIX): name for name in known}
            close = difflib.get_close_matches(variable.removeprefix(PREFIX), names, n=1)
            hint = f"; did you mean {names[close[0]]}?" if close else "; `deskwire config` lists them all"
            yield f"{variable} is not a setting{hint}"
