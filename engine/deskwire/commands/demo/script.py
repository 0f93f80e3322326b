"""A chat as the requests that replay it, and what must follow from each answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, assert_never

from msgspec import Struct

from deskwire.commands.demo.chats import Chat, Speaker, Turn
from deskwire.commands.demo.checks.history import Effect

Kind = Literal["create", "message", "patch", "close", "rate"]

AUTHORS: Final[dict[Speaker, dict[str, str]]] = {
    "customer": {"type": "contact"},
    "agent": {"type": "agent", "name": "Demo agent"},
    "system": {"type": "system"},
}
CLOSED_EVERY: Final = 2
RATED_EVERY: Final = 3
PATCHED_EVERY: Final = 4
REOPENED_EVERY: Final = 5
_REOPENING: Final = "One more question, sorry: are you still there?"


class Step(Struct, frozen=True):
    """One request.

    Args:
        path: the rest behind `/v3/s2s/conversations` and, except for a creation, the conversation's id.
    """

    kind: Kind
    method: str
    path: str
    body: dict[str, Any]


def script(chat: Chat, number: int, user_id: str) -> Iterator[Step]:
    """Yield the requests that replay `chat`, in order.

    Args:
        number: its place in the replay, counted from 1; it decides what happens behind the last turn.
        user_id: the contact's.
    """
    customer = chat.customer.model_dump(exclude_none=True)
    creation: dict[str, Any] = {"contact": {"userId": user_id, **customer}}
    turns = chat.turns
    if turns[0].speaker == "customer":
        creation["message"] = {"text": turns[0].text}
        turns = turns[1:]
    yield Step("create", "POST", "", creation)
    for turn in turns:
        yield _message(turn)
    if number % PATCHED_EVERY == 0:
        attributes = {"source": "demo", "topic": list(chat.topic), "turns": len(chat.turns)}
        yield Step("patch", "PATCH", "", {"title": f"Demo: {chat.id}"[:500], "attributes": attributes})
    reopened = number % REOPENED_EVERY == 0
    if reopened or number % CLOSED_EVERY == 0:
        yield Step("close", "POST", "/close", {"closedBy": "agent"})
    if number % RATED_EVERY == 0:
        yield Step("rate", "POST", "/rating", {"rating": number % 11})
    if reopened:
        yield _message(Turn(speaker="customer", text=_REOPENING))


def _message(turn: Turn) -> Step:
    body = {"text": turn.text, "author": AUTHORS[turn.speaker]}
    return Step("message", "POST", "/messages", body)


def effects_of(step: Step, response: Any, closed: bool) -> tuple[Effect, ...]:
    """Return the events that an acknowledged `step` must have caused.

    Args:
        response: the JSON of the service's response.
        closed: whether the conversation is known to have been closed before.
    """
    match step.kind:
        case "create":
            return _creation(step, response)
        case "message":
            reopens = closed and step.body["author"]["type"] == "contact"
            message = Effect("message.created", {"message": response})
            reopened = Effect("conversation.reopened", {"conversation.closed": False})
            return (reopened, message) if reopens else (message,)
        case "patch":
            changed = {"changed": ["attributes", "title"], "conversation": response}
            return (Effect("conversation.updated", changed),)
        case "close":
            return (Effect("conversation.closed", {"closedBy": "agent", "conversation": response}),)
        case "rate":
            rated = {"changed": ["rating"], "conversation.rating": response["rating"]}
            return (Effect("conversation.updated", rated),)
        case _:
            assert_never(step.kind)


def _creation(step: Step, response: Any) -> tuple[Effect, ...]:
    if "message" not in step.body:
        return (Effect("conversation.created", {"conversation": response}),)
    created = Effect("conversation.created", {"conversation.id": response["id"]})
    said = {"message.text": step.body["message"]["text"], "message.author.type": "contact"}
    return (created, Effect("message.created", {**said, "conversation": response}))
