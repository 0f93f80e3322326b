"""One message that is redacted or deleted: with it go the events that showed it (ADR 21)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.model.commands import Answer, OnConversation, Request, good, refused
from tests.model.things import JSON, Conversation
from tests.model.world import World

NO_MESSAGE: Final = "msg_01M3250V00PPPPPPPPPPPPPPPP"


@dataclass(frozen=True)
class OnMessage(OnConversation):
    """A command on the message at this place of a conversation; on an unknown one if there is none, or its id is not known."""

    message: int

    def said(self, world: World) -> JSON | None:
        """The message, unless it was deleted."""
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
        """What it does to a message that is there."""
        raise NotImplementedError


@dataclass(frozen=True)
class Redact(OnMessage):
    """Hide these ranges of its text, or with None take all of it away."""

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
    """Delete it: its place stays."""

    def request(self, world: World) -> Request:
        return Request("DELETE", self.its_path(world))

    def rewrite(self, world: World, found: Conversation, said: JSON, answer: Answer) -> None:
        world.rewrite(found, said, "deleted", text="")
        good(answer, {"id": said["id"], "deleted": True})
