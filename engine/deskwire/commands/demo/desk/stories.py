"""The conversations of the demo's inbox as a plan: who says what and when, the same in each run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, Final, Literal

import orjson
from msgspec import Struct

from deskwire.commands.demo.desk.people import CUSTOMERS, Customer
from deskwire.engine.conversations.conversation import Status

Speaker = Literal["customer", "agent", "note"]

CONVERSATIONS: Final = 152
LIVE: Final = 40
"""The last of them are held now, message by message; the others were long ago, and are imported."""

_MINUTE: Final = 60_000
_DAY: Final = 24 * 60 * _MINUTE
_STATUSES: Final[tuple[Status, ...]] = ("CLOSED", "OPEN", "CLOSED", "PENDING", "CLOSED", "OPEN", "CLOSED")


class Turn(Struct, frozen=True):
    """One thing that somebody says."""

    speaker: Speaker
    text: str


class Story(Struct, frozen=True):
    """A conversation as it may happen with several customers."""

    language: str
    title: str
    tags: tuple[str, ...]
    turns: tuple[Turn, ...]
    rating: int | None


class Planned(Struct, frozen=True):
    """A conversation that is to be.

    Args:
        age_ms: how long ago it began.
        agent: the number of the colleague who answers.
    """

    number: int
    customer: Customer
    title: str
    tags: tuple[str, ...]
    turns: tuple[Turn, ...]
    status: Status
    rating: int | None
    age_ms: int
    agent: int

    @property
    def snoozed(self) -> bool:
        """Tell whether it is snoozed."""
        return self.status != "CLOSED" and self.number % 13 == 0

    @property
    def assigned(self) -> Literal["nobody", "user", "team"]:
        """Name the kind of its assignee."""
        if self.status != "CLOSED" and self.number % 3 == 0:
            return "nobody"
        return "team" if self.number % 5 == 0 else "user"


def load_stories() -> tuple[Story, ...]:
    """Return the bundled stories; the last one is the long one."""
    lines = files("deskwire.commands.demo.desk").joinpath("stories.jsonl").read_bytes().splitlines()
    return tuple(_story(orjson.loads(line)) for line in lines)


def plan(stories: Sequence[Story]) -> tuple[Planned, ...]:
    """Return all conversations, the oldest first; the long one is the last."""
    *short, long = stories
    told = dict.fromkeys(CUSTOMERS, 0)
    planned: list[Planned] = []
    for number in range(CONVERSATIONS - 1):
        customer = CUSTOMERS[number * 7 % len(CUSTOMERS)]
        own = [story for story in short if story.language == customer.language]
        english = [story for story in short if story.language == "en"]
        choice = own if told[customer] % 3 == 0 else english  # some write in English now and then
        story = choice[number * 5 % len(choice)]
        told[customer] += 1
        planned.append(_planned(number, customer, story))
    planned.append(_planned(CONVERSATIONS - 1, CUSTOMERS[-1], long))
    return tuple(planned)


def _planned(number: int, customer: Customer, story: Story) -> Planned:
    long = number == CONVERSATIONS - 1
    status: Status = "OPEN" if long else _STATUSES[number % len(_STATUSES)]
    turns = story.turns
    if status == "OPEN" and not long:  # some wait for an answer, at the first turn or a later one
        asked = [index for index, turn in enumerate(turns, 1) if turn.speaker == "customer"]
        turns = turns[: asked[number % len(asked)]]
    words = {"order": f"A-{4100 + number * 37}", "name": customer.name, "city": customer.city}
    left = CONVERSATIONS - LIVE - number
    return Planned(
        number,
        customer,
        _filled(story.title, words),
        story.tags + (("vip",) if customer.number % 9 == 0 else ()),
        tuple(Turn(turn.speaker, _filled(turn.text, words)) for turn in turns),
        status,
        story.rating if status == "CLOSED" and number % 2 == 0 else None,
        max(0, left) * (_DAY // 6) + number % 7 * 11 * _MINUTE + 50 * _MINUTE,
        number % 3,
    )


def imported(
    each: Planned, now: int, agents: Sequence[str], teams: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the records of a conversation that was long ago, with its messages.

    Args:
        now: in milliseconds.
        agents, teams: ids.
    """
    began, external = now - each.age_ms, f"desk-{each.number}"
    ended = began + len(each.turns) * 4 * _MINUTE
    record: dict[str, Any] = {
        "type": "conversation",
        "externalId": external,
        "contact": {"userId": each.customer.user_id},
        "createdAt": _iso(began),
        "title": each.title,
        "status": each.status,
        "unread": each.turns[-1].speaker == "customer" and each.status == "OPEN",
    }
    if each.status == "CLOSED":
        record |= {"closedBy": "agent", "closedAt": _iso(ended)}
    if each.rating is not None:
        record |= {"rating": each.rating, "ratedAt": _iso(ended)}
    if each.assigned == "team":
        record["assignee"] = {"type": "team", "id": teams[each.number % len(teams)]}
    elif each.assigned == "user":
        record["assignee"] = {"type": "user", "id": agents[each.agent]}
    yield record
    for index, turn in enumerate(each.turns):
        author = (
            {"type": "contact"} if turn.speaker == "customer" else {"type": "agent", "id": agents[each.agent]}
        )
        message: dict[str, Any] = {
            "type": "message",
            "externalId": str(index),
            "conversation": external,
            "author": author,
            "text": turn.text,
            "createdAt": _iso(began + index * 4 * _MINUTE),
        }
        yield message | ({"internal": True} if turn.speaker == "note" else {})


def _filled(text: str, words: dict[str, str]) -> str:
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", word)
    return text


def _story(line: Any) -> Story:
    turns = tuple(Turn(turn["speaker"], turn["text"]) for turn in line["turns"])
    return Story(line["language"], line["title"], tuple(line["tags"]), turns, line["rating"])


def _iso(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
