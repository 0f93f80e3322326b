"""Versions of events: the dates in `apiVersion`, each of which names a shape of the payload (contract 9).

Envelopes are stored in the newest version, and the feed and the stream send the stored bytes. A webhook endpoint is
pinned to a version. If that is an older one, each attempt at a delivery renders the stored envelope: a conversion for
each version in between takes it one version back.

To add a version: change `API_VERSION`, and add the previous one to the front of `EVENT_VERSIONS` with its conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, Final

import orjson
from msgspec import Struct

from deskwire.engine.events.types import API_VERSION

# Returns the `data` of an event of this type as the older version has it. It must not change its argument.
DataConversion = Callable[[str, dict[str, Any]], dict[str, Any]]


class OlderVersion(Struct, frozen=True):
    """An older version, and the conversion of `data` from the next newer version.

    Args:
        name: the value of `apiVersion`, a date such as `2026-11-01`.
    """

    name: str
    convert: DataConversion


class EventVersions:
    """The known versions of events.

    Args:
        newest: the version in which new events are stored.
        older: the older versions that endpoints may be pinned to, newest first.

    Attributes:
        newest: see above.
        names: all versions, newest first.
    """

    def __init__(self, newest: str, older: Sequence[OlderVersion] = ()) -> None:
        self.newest: Final = newest
        self.names: Final = (newest, *(each.name for each in older))
        assert sorted(self.names, reverse=True) == [*self.names], "versions are dates, newest first"
        self._older: Final = tuple(older)

    def render(self, body: bytes, version: str) -> bytes:
        """Return a stored envelope in this version, unchanged if the version is the newest.

        An envelope that was stored in an older version than the wanted one stays as it is, and its `apiVersion` says
        so. So does every envelope if this program does not know the version.
        """
        if version == self.newest or version not in self.names:
            return body
        envelope: dict[str, Any] = orjson.loads(body)
        steps = takewhile(lambda each: each.name >= version, self._older)
        for step in (each for each in steps if each.name < envelope["apiVersion"]):
            envelope["data"] = step.convert(envelope["type"], envelope["data"])
            envelope["apiVersion"] = step.name
        return orjson.dumps(envelope)


EVENT_VERSIONS: Final = EventVersions(API_VERSION)
