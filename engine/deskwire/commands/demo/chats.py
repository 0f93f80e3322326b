"""Support chats from JSON lines, and the requests that replay them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import orjson
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from deskwire.engine.core.text import MESSAGE_TEXT_MAX

Speaker = Literal["customer", "agent", "system"]
StepKind = Literal["create", "message", "patch", "close", "rate"]

_AUTHORS: Final[dict[Speaker, dict[str, str]]] = {
    "customer": {"type": "contact"},
    "agent": {"type": "agent", "name": "Demo agent"},
    "system": {"type": "system"},
}
_CLOSED_EVERY: Final = 2
_RATED_EVERY: Final = 3
_PATCHED_EVERY: Final = 4
_REOPENED_EVERY: Final = 5
_REOPENING_TEXT: Final = "One more question, sorry: are you still there?"


class BadChats(Exception):
    """Input that can't be replayed; `problems` has one sentence for each bad line."""

    def __init__(self, source: str, problems: tuple[str, ...]) -> None:
        super().__init__(f"{source} can't be replayed:\n" + "\n".join(f"  {each}" for each in problems))
        self.problems: Final = problems


class ChatTurn(BaseModel):
    """One message of a chat."""

    model_config = ConfigDict(frozen=True)

    speaker: Speaker
    text: Annotated[str, Field(strict=True, min_length=1, max_length=MESSAGE_TEXT_MAX)]


class ChatCustomer(BaseModel):
    """The customer's name and address; other fields are ignored."""

    model_config = ConfigDict(strict=True, frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    email: Annotated[str, Field(min_length=3, max_length=320)] | None = None


class Chat(BaseModel):
    """A chat as a line of the file has it; other fields are ignored."""

    model_config = ConfigDict(frozen=True)

    id: Annotated[str, Field(strict=True, min_length=1)]
    topic: tuple[str, ...] = ()
    customer: ChatCustomer = ChatCustomer()
    turns: Annotated[tuple[ChatTurn, ...], Field(min_length=1)]


def load_chats(path: Path | None) -> tuple[Chat, ...]:
    """Return the chats of a file; without a path, the bundled ones.

    Raises:
        BadChats: some lines are no chat, or there is no chat at all.
        OSError: the file can't be read.
    """
    if path is None:
        return parse_chats(bundled("chats.jsonl"), "The bundled file")
    return parse_chats(path.read_bytes(), str(path))


def bundled(name: str) -> bytes:
    """Return the content of a data file of the demo."""
    return files("deskwire.commands.demo").joinpath(name).read_bytes()


def parse_chats(content: bytes, source: str) -> tuple[Chat, ...]:
    """Return the chats in `content`, one JSON object a line, without empty lines. Raises BadChats."""
    chats: list[Chat] = []
    problems: list[str] = []
    first_seen: dict[str, int] = {}
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            chat = Chat.model_validate(orjson.loads(line))
        except ValidationError as error:
            problems.append(f"line {number}: {'; '.join(_reasons(error))}")
        except orjson.JSONDecodeError as error:
            problems.append(f"line {number}: not JSON: {error}")
        else:
            if (first := first_seen.setdefault(chat.id, number)) != number:
                problems.append(f"line {number}: the id {chat.id!r} is that of line {first}")
            chats.append(chat)
    if not chats and not problems:
        problems.append("there is no chat in it")
    if problems:
        raise BadChats(source, tuple(problems))
    return tuple(chats)


def _reasons(error: ValidationError) -> Iterator[str]:
    for each in error.errors(include_url=False):
        place = ".".join(str(part) for part in each["loc"])
        yield f"{place}: {each['msg']}" if place else each["msg"]


class ChatStep(Struct, frozen=True):
    """One request.

    Args:
        path: appended to `/v3/s2s/conversations` and, except for a creation, the conversation's id.
        event: the type of the event that shows the response, as the `noun` in its data.
    """

    kind: StepKind
    method: str
    path: str
    body: dict[str, Any]
    event: str
    noun: str = "conversation"


def script(chat: Chat, number: int, user_id: str) -> Iterator[ChatStep]:
    """Yield the requests that replay `chat`, in order.

    Args:
        number: the chat's position in the replay, from 1; it decides what follows the last turn.
        user_id: the contact's.
    """
    creation: dict[str, Any] = {"contact": {"userId": user_id, **chat.customer.model_dump(exclude_none=True)}}
    event, turns = "conversation.created", chat.turns
    if turns[0].speaker == "customer":
        creation["message"] = {"text": turns[0].text}
        event, turns = "message.created", turns[1:]
    yield ChatStep("create", "POST", "", creation, event)
    for turn in turns:
        yield _message(turn.text, turn.speaker)
    if number % _PATCHED_EVERY == 0:
        attributes = {"source": "demo", "topic": list(chat.topic), "turns": len(chat.turns)}
        fields = {"title": f"Demo: {chat.id}"[:500], "attributes": attributes}
        yield ChatStep("patch", "PATCH", "", fields, "conversation.updated")
    reopened = number % _REOPENED_EVERY == 0
    if reopened or number % _CLOSED_EVERY == 0:
        yield ChatStep("close", "POST", "/close", {"closedBy": "agent"}, "conversation.closed")
    if number % _RATED_EVERY == 0:
        yield ChatStep("rate", "POST", "/rating", {"rating": number % 11}, "conversation.updated")
    if reopened:
        yield _message(_REOPENING_TEXT, "customer")


def _message(text: str, speaker: Speaker) -> ChatStep:
    body = {"text": text, "author": _AUTHORS[speaker]}
    return ChatStep("message", "POST", "/messages", body, "message.created", "message")
