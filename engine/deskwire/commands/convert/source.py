"""The port to an export: a record of it becomes parts, or a note why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from deskwire.commands.convert.parts import Part
from deskwire.commands.convert.tally import Tally


class Source(Protocol):
    """The shapes of one product's exports."""

    name: str
    """The name in front of ids, such as `zendesk`."""

    def parts(self, record: Mapping[str, Any], tally: Tally) -> Iterator[Part]:
        """Yield the parts of a record, and note what of it is left out."""
        ...
