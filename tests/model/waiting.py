"""The mark that a contact needs no answer, and its removal by an agent."""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.commands import Answer, OnConversation, Request, refused
from tests.model.things import Conversation
from tests.model.world import World


class _OnWait(OnConversation):
    def mark(self, world: World) -> str:
        """Return the path of the mark."""
        return self.path(world, "/no-answer-needed").removeprefix("/s2s")

    def compare(self, found: Conversation, answer: Answer) -> None:
        """Assert that the answer says whether the contact waits, and whether the mark is there."""
        counted = found.milestones
        assert answer.status == 200, answer
        assert (answer.body["waitingSince"] is not None) == counted.waits, (counted, answer)
        assert answer.body["noAnswerNeededSince"] == counted.unneeded, (counted, answer)


@dataclass(frozen=True)
class NoAnswer(_OnWait):
    """Mark that no answer is needed, as an agent whose newest message has this index."""

    index: int

    def request(self, world: World) -> Request:
        return Request("PUT", self.mark(world), {"index": self.index}, agent=True)

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        newest, counted = len(found.messages) - 1, found.milestones
        if found.fields["status"] == "CLOSED":
            refused(answer, 409, "conversation_closed")
        elif self.index > newest:
            refused(answer, 422, "invalid_input")
        elif counted.waits and self.index < newest:
            refused(answer, 409, "newer_message")
        else:
            if counted.waits:
                assert answer.body.get("noAnswerNeededSince") is not None, answer
                counted.waits, counted.unneeded = False, answer.body["noAnswerNeededSince"]
            self.compare(found, answer)


@dataclass(frozen=True)
class WaitAgain(_OnWait):
    """Take the mark back: the contact waits since the same time as before."""

    def request(self, world: World) -> Request:
        return Request("DELETE", self.mark(world), agent=True)

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        counted = found.milestones
        if found.fields["status"] == "CLOSED":
            refused(answer, 409, "conversation_closed")
            return
        if counted.unneeded is not None:
            assert answer.body.get("waitingSince") == counted.unneeded, (counted, answer)
            counted.waits, counted.unneeded = True, None
        self.compare(found, answer)
