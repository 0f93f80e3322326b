"""Replays chats through the API, several at once, and keeps what was asked for and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import trio

from deskwire.commands.demo.chats import Chat, ChatStep, script
from tests.support.replay.api import Api, Result
from tests.support.replay.effects import effects_of
from tests.support.replay.history import Command

_ROOT: Final = "/s2s/conversations"


class Replay:
    """One run over some chats; within a chat each request waits for the answer to the one before.

    Args:
        ours: the beginning of the contacts' user ids; they end in the chat's number.
        advance: called when a chat is over.
    """

    def __init__(self, api: Api, ours: str, advance: Callable[[], None] = lambda: None) -> None:
        self.commands: list[Command] = []
        self._api = api
        self._ours = ours
        self._advance = advance

    async def run(self, chats: Iterable[Chat], concurrency: int) -> None:
        """Replay all chats, `concurrency` of them at once."""
        numbered = iter(enumerate(chats, 1))
        async with trio.open_nursery() as nursery:
            for _ in range(concurrency):
                nursery.start_soon(self._work, numbered)

    def conversations(self) -> list[str]:
        """Return the ids of all conversations whose creation was acknowledged."""
        return list(dict.fromkeys(each.conversation for each in self.commands if each.conversation))

    async def _work(self, numbered: Iterator[tuple[int, Chat]]) -> None:
        for number, chat in numbered:
            await self._chat(chat, number)
            self._advance()

    async def _chat(self, chat: Chat, number: int) -> None:
        steps = script(chat, number, f"{self._ours}{number}")
        conversation = await self._create(next(steps))
        if conversation is None:
            return
        closed = False
        for step in steps:
            result = await self._api.call(step.method, f"{_ROOT}/{conversation}{step.path}", step.body)
            self._note(step, conversation, result, closed)
            # Known to be closed; after a lost answer the state is unknown, and nothing is expected of it.
            closed = result.outcome == "acknowledged" and (
                step.kind == "close" or (closed and not _talks(step))
            )

    async def _create(self, step: ChatStep) -> str | None:
        result = await self._api.call(step.method, _ROOT, step.body)
        conversation = str(result.body["id"]) if result.outcome == "acknowledged" else None
        self._note(step, conversation, result, closed=False)
        return conversation

    def _note(self, step: ChatStep, conversation: str | None, result: Result, closed: bool) -> None:
        acknowledged = result.outcome == "acknowledged"
        effects = effects_of(step, result.body, closed) if acknowledged else ()
        command = Command(step.kind, conversation, result.sent_at, result.outcome, effects, result.detail)
        self.commands.append(command)


def _talks(step: ChatStep) -> bool:
    """Say whether the step is a message of the contact, which reopens a closed conversation."""
    return step.kind == "message" and step.body["author"]["type"] == "contact"
