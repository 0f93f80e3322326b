"""Channel names, and what each lets through (decisions 5; Pusher protocol, channel names)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from deskwire.engine.errors import Forbidden
from deskwire.engine.people import Project

MAX_NAME: Final = 164
_PROJECT: Final = "private-project-"
_NAME: Final = re.compile(r"[A-Za-z0-9_\-=@,.;]{1,164}")


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of one project: what a consumer holds. `project` is a storage key."""

    project: int
    name: str


def open_channel(project: Project, name: str) -> Channel:
    """The channel `name` as `project` may use it.

    Another project's channel is refused in the same words as one that does not exist.

    Raises Forbidden (`unknown_channel`): not a channel of this project.
    """
    if _NAME.fullmatch(name) is None or name != f"{_PROJECT}{project.id}":
        raise Forbidden(
            f"There is no such channel for this project. Its channel is {_PROJECT}{project.id}.",
            code="unknown_channel",
        )
    return Channel(project.rowid, name)
