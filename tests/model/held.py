"""Messages held by an agent: withdrawn, sent early, or sent when their time comes."""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.commands import Answer, OnConversation, Request, good, refused
from tests.model.things import JSON, Conversation, HeldMessage
from tests.model.world import World

LONG_S = 60
"""The longest hold; every example ends within it."""
UNKNOWN = "msg_01M3250V00PPPPPPPPPPPPPPPP"


@dataclass(frozen=True)
class Hold(OnConversation):
    """Hold a message for some seconds; until it is sent, customers and webhooks do not see it."""

    text: str
    seconds: int = LONG_S

    def request(self, world: World) -> Request:
        path = self.path(world, "/messages").removeprefix("/s2s")
        return Request("POST", path, {"text": self.text, "holdSeconds": self.seconds}, agent=True)

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        assert answer.status == 200, answer
        body = answer.body
        assert body["id"] not in {each.id for each in world.held}
        wanted = (found.id, self.text, "held", None)
        assert tuple(body[name] for name in ("conversationId", "text", "status", "problem")) == wanted
        world.held.append(HeldMessage(body["id"], found, self.text))


@dataclass(frozen=True)
class OnHeld:
    """A command on the held message at this index, counting all that ever existed; an unknown one if there is none."""

    at: int

    def target(self, world: World) -> HeldMessage | None:
        """Return the message; None if it never existed."""
        return world.held[self.at] if 0 <= self.at < len(world.held) else None

    def path(self, world: World, tail: str = "") -> str:
        """Return the message's path for the agent."""
        found = self.target(world)
        return f"/held-messages/{UNKNOWN if found is None else found.id}{tail}"

    def missing(self, world: World, answer: Answer) -> bool:
        """Return whether the message does not exist; then the answer must be 404."""
        found = self.target(world)
        there = found is not None and found.state != "draft" and not found.conversation.gone
        if not there:
            refused(answer, 404, "held_message_not_found")
        return not there


@dataclass(frozen=True)
class TakeBack(OnHeld):
    """Withdraw the message: its text returns to the draft, and it is never sent."""

    def request(self, world: World) -> Request:
        return Request("DELETE", self.path(world), agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        found = self.target(world)
        if self.missing(world, answer) or found is None:
            return
        elif found.state == "sent":
            refused(answer, 409, "already_sent")
        else:
            assert answer.status == 200, answer
            assert found.text in answer.body["draft"]["text"]
            found.state = "draft"


@dataclass(frozen=True)
class SendHeld(OnHeld):
    """Send the message now. A message that was sent before is returned as it is, and not sent twice."""

    def request(self, world: World) -> Request:
        return Request("POST", self.path(world, "/send"), {}, agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        found = self.target(world)
        if self.missing(world, answer) or found is None:
            return
        elif found.state == "sent":
            assert (answer.status, answer.body.get("id")) == (200, found.id), answer
        else:
            good(answer, {**send(world, found), "internal": False, "mentions": []})


def send(world: World, held: HeldMessage) -> JSON:
    """Send the message as if its agent posted it now; return its JSON."""
    held.state = "sent"
    return world.say(held.conversation, {"type": "agent", **world.agent}, held.text, held.id)


@dataclass(frozen=True)
class ListHeld:
    """List the held messages, oldest first."""

    def request(self, world: World) -> Request:
        return Request("GET", "/held-messages", agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        assert answer.status == 200, answer
        waiting = [each for each in world.held if each.state == "held" and not each.conversation.gone]
        listed = [(each["id"], each["text"], each["status"]) for each in answer.body["items"]]
        assert sorted(listed) == sorted((each.id, each.text, "held") for each in waiting)
