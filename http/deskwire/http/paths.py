"""What may stand in a path where other paths have a word of their own: there those are meant, whatever the method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from werkzeug.routing import BaseConverter


class TicketConverter(BaseConverter):
    """The id of a ticket; `/tickets/bulk` is a path of its own."""

    regex = r"(?!bulk\Z)[^/]+"


class UserConverter(BaseConverter):
    """A backend's user id, which may have slashes; what ends in `/conversations` is the list of somebody's."""

    part_isolating = False
    regex = r"[^/].*?(?<!/conversations)"
    weight = 200


CONVERTERS: Final[Mapping[str, type[BaseConverter]]] = {"ticket": TicketConverter, "user": UserConverter}
"""By the names that stand in the routes' paths."""
