"""One command for many conversations, of which some are asked at once: most of these share a commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import trio

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.actor import ActorFailed
from deskwire.engine.conversations.commands import Command
from deskwire.engine.conversations.registry import ActorRegistry
from deskwire.engine.core.errors import Conflict, NotFound, Unavailable

_AT_ONCE: Final = 16


async def ask_all(
    actors: ActorRegistry,
    project: Project,
    conversation_ids: Sequence[str],
    command: Command,
    refused: Callable[[str], object],
    *refusals: type[NotFound | Conflict],
) -> None:
    """Have a command carried out by each of these conversations.

    Args:
        refused: told the id of each that refuses the command in one of these ways, which is fine.

    Raises Unavailable or ActorFailed, the first failure of those asked together, once all of them are over.
    """
    for start in range(0, len(conversation_ids), _AT_ONCE):
        failures: list[Unavailable | ActorFailed] = []

        async def ask(conversation_id: str, failures: list[Unavailable | ActorFailed] = failures) -> None:
            try:
                await actors.ask(project, conversation_id, command)
            except refusals:
                refused(conversation_id)
            except (Unavailable, ActorFailed) as error:
                failures.append(error)

        async with trio.open_nursery() as nursery:
            for conversation_id in conversation_ids[start : start + _AT_ONCE]:
                nursery.start_soon(ask, conversation_id)
        if failures:
            raise failures[0]
