"""Support chats from JSON lines; every line that is no chat is named, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final, Literal

import orjson
from msgspec import Struct, field
from pydantic import BaseModel, ConfigDict, Field, ValidationError

Speaker = Literal["customer", "agent", "system"]

TEXT_MAX: Final = 20_000  # decisions 4: the longest message
_BUNDLED: Final = "chats.jsonl"


class BadChats(Exception):
    """Input that can't be replayed; `problems` has one sentence for each bad line, all of them."""

    def __init__(self, source: str, problems: tuple[str, ...]) -> None:
        super().__init__(f"{source} can't be replayed:\n" + "\n".join(f"  {each}" for each in problems))
        self.problems: Final = problems


class Turn(BaseModel):
    """One thing that somebody says."""

    model_config = ConfigDict(strict=True, frozen=True)

    speaker: Speaker
    text: Annotated[str, Field(min_length=1, max_length=TEXT_MAX)]


class Customer(BaseModel):
    """The customer, as far as the data says; other fields are left aside."""

    model_config = ConfigDict(strict=True, frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    email: Annotated[str, Field(min_length=3, max_length=320)] | None = None


class _Line(BaseModel):
    """A line as it stands in the file; other fields are left aside."""

    model_config = ConfigDict(strict=True)

    id: Annotated[str, Field(min_length=1)]
    topic: list[str] = []
    customer: Customer = Customer()
    turns: Annotated[list[Turn], Field(min_length=1)]


class Chat(Struct, frozen=True):
    """A whole chat, in the order in which it was spoken."""

    id: str
    turns: tuple[Turn, ...]
    topic: tuple[str, ...] = ()
    customer: Customer = field(default_factory=Customer)


def load_chats(path: Path | None) -> tuple[Chat, ...]:
    """Return the chats of a file, or the bundled ones.

    Raises:
        BadChats: with every line that is no chat; also for a file without any.
        OSError: the file can't be read.
    """
    if path is None:
        return parse_chats(
            files("deskwire.commands.demo").joinpath(_BUNDLED).read_bytes(), "The bundled file"
        )
    return parse_chats(path.read_bytes(), str(path))


def parse_chats(content: bytes, source: str) -> tuple[Chat, ...]:
    """Return the chats in `content`, one JSON object a line; empty lines don't count. Raises BadChats."""
    chats: list[Chat] = []
    problems: list[str] = []
    first_seen: dict[str, int] = {}
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            chat = _chat(line)
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


def _chat(line: bytes) -> Chat:
    parsed = _Line.model_validate(orjson.loads(line))
    return Chat(parsed.id, tuple(parsed.turns), tuple(parsed.topic), parsed.customer)


def _reasons(error: ValidationError) -> Iterator[str]:
    for each in error.errors(include_url=False):
        place = ".".join(str(part) for part in each["loc"])
        yield f"{place}: {each['msg']}" if place else each["msg"]
