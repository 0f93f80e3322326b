"""Redaction and deletion of one message, together with the events that showed it (ADR 21)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.model.commands import Answer, OnConversation, Request, good, refused
from tests.model.things import JSON, Conversation
from tests.model.world import World

NO_MESSAGE: Final = "msg_01M3250V00PPPPPPPPPPPPPPPP"


@dataclass(frozen=True)
class OnMessage(OnConversation):
    """A command on the message at this index of a conversation; on an unknown one if there is none, or its id is unknown."""

    message: int

    def said(self, world: World) -> JSON | None:
        """Return the message; None if it was deleted."""
        found = self.target(world)
        there = found is not None and 0 <= self.message < len(found.messages)
        return found.messages[self.message] if found is not None and there else None

    def its_path(self, world: World, tail: str = "") -> str:
        said = self.said(world)
        identifier = NO_MESSAGE if said is None else said["id"] or NO_MESSAGE
        return self.path(world, f"/messages/{identifier}{tail}")

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        said = self.said(world)
        if said is None or said["id"] is None or said["index"] in found.deleted:
            refused(answer, 404, "message_not_found")
        else:
            self.rewrite(world, found, said, answer)

    def rewrite(self, world: World, found: Conversation, said: JSON, answer: Answer) -> None:
        """Apply the command to a message that exists."""
        raise NotImplementedError


@dataclass(frozen=True)
class Redact(OnMessage):
    """Redact these ranges of the text, or all of it for None."""

    ranges: tuple[tuple[int, int], ...] | None = None

    def request(self, world: World) -> Request:
        ranges = [{"start": start, "end": end} for start, end in self.ranges or ()]
        body = {"text": True} if self.ranges is None else {"ranges": ranges}
        return Request("POST", self.its_path(world, "/redact"), body)

    def rewrite(self, world: World, found: Conversation, said: JSON, answer: Answer) -> None:
        before = said["text"]
        if any(end > len(before) for _, end in self.ranges or ()):
            refused(answer, 422, "invalid_input")
            return
        hidden = {at for start, end in self.ranges or () for at in range(start, end)}
        after = "".join("*" if at in hidden else character for at, character in enumerate(before))
        after = "" if self.ranges is None else after
        if after != before:
            world.rewrite(found, said, "redacted", text=after)
        good(answer, said)


@dataclass(frozen=True)
class DeleteMessage(OnMessage):
    """Delete the message; its index stays in use."""

    def request(self, world: World) -> Request:
        return Request("DELETE", self.its_path(world))

    def rewrite(self, world: World, found: Conversation, said: JSON, answer: Answer) -> None:
        world.rewrite(found, said, "deleted", text="")
        good(answer, {"id": said["id"], "deleted": True})
