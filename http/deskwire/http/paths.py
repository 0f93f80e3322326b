"""What may stand in a path where other paths have a word of their own: there those are meant, whatever the method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from werkzeug.routing import BaseConverter


class TicketConverter(BaseConverter):
    """The id of a ticket; `/tickets/bulk` is a path of its own."""

    regex = r"(?!bulk\Z)[^/]+"


class WorkflowConverter(BaseConverter):
    """The id of a workflow; `/workflows/validate` is a path of its own."""

    regex = r"(?!validate\Z)[^/]+"


class UserConverter(BaseConverter):
    """A backend's user id, which may have slashes; what ends in these words is somebody's conversations or export."""

    part_isolating = False
    regex = r"[^/].*?(?<!/conversations)(?<!/export)"
    weight = 200


CONVERTERS: Final[Mapping[str, type[BaseConverter]]] = {
    "ticket": TicketConverter,
    "user": UserConverter,
    "workflow": WorkflowConverter,
}
"""By the names that stand in the routes' paths."""
