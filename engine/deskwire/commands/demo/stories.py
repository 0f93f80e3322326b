"""The conversations of the demo's inbox and their people: invented, and the same in each run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from deskwire.commands.demo.chats import bundled
from deskwire.engine.conversations.conversation import Status

CONVERSATIONS: Final = 152
LIVE_CONVERSATIONS: Final = 40
"""The newest conversations, which are held message by message; the older ones are imported."""

_MINUTE_MS: Final = 60_000
_DAY_MS: Final = 24 * 60 * _MINUTE_MS
_STATUSES: Final[tuple[Status, ...]] = ("CLOSED", "OPEN", "CLOSED", "PENDING", "CLOSED", "OPEN", "CLOSED")
_USER_ID_PREFIX: Final = "desk-"


class Customer(Struct, frozen=True):
    """A contact, with the language of its messages."""

    name: str
    language: str
    city: str
    number: int

    @property
    def user_id(self) -> str:
        """The id in the backend."""
        return f"{_USER_ID_PREFIX}{self.number:02}"

    @property
    def identity(self) -> dict[str, str]:
        """The identity fields of the contact."""
        identity = {"name": self.name, "email": f"customer{self.number:02}@mail.example"}
        if self.number % 3 == 0:
            identity["phone"] = f"+44 20 7946 {self.number:04}"
        return identity


class Colleague(Struct, frozen=True):
    """An agent, with the name of its team."""

    name: str
    email: str
    team: str


class StoryTurn(Struct, frozen=True):
    """One message, or an internal note."""

    speaker: Literal["customer", "agent", "note"]
    text: str


class Story(Struct, frozen=True):
    """A conversation that may take place with several customers."""

    language: str
    title: str
    tags: tuple[str, ...]
    turns: tuple[StoryTurn, ...]
    rating: int | None


class PlannedConversation(Struct, frozen=True):
    """A conversation to create.

    Args:
        age_ms: time since its begin.
        agent: the index of the colleague who answers.
    """

    number: int
    customer: Customer
    title: str
    tags: tuple[str, ...]
    turns: tuple[StoryTurn, ...]
    status: Status
    rating: int | None
    age_ms: int
    agent: int

    @property
    def snoozed(self) -> bool:
        """True if it is snoozed."""
        return self.status != "CLOSED" and self.number % 13 == 0

    @property
    def assigned(self) -> Literal["nobody", "user", "team"]:
        """The kind of its assignee."""
        if self.status != "CLOSED" and self.number % 3 == 0:
            return "nobody"
        return "team" if self.number % 5 == 0 else "user"


SUPPORT: Final = "Support"
BILLING: Final = "Billing"
COLLEAGUES: Final = (
    Colleague("Grace Lindqvist", "grace@demo.example", SUPPORT),
    Colleague("Ken Adeyemi", "ken@demo.example", SUPPORT),
    Colleague("Mina Park", "mina@demo.example", BILLING),
)


def _customers() -> Iterator[Customer]:
    for number, line in enumerate(bundled("customers.txt").decode().splitlines()):
        name, language, city = line.split("|")
        yield Customer(name, language, city, number)


CUSTOMERS: Final = tuple(_customers())


def load_stories() -> tuple[Story, ...]:
    """Return the bundled stories; the last one is the long one."""
    return tuple(msgspec.json.decode(line, type=Story) for line in bundled("stories.jsonl").splitlines())


def plan(stories: Sequence[Story]) -> tuple[PlannedConversation, ...]:
    """Return all conversations, the oldest first; the long one is the last."""
    *short, long = stories
    counts = dict.fromkeys(CUSTOMERS, 0)
    planned: list[PlannedConversation] = []
    for number in range(CONVERSATIONS - 1):
        customer = CUSTOMERS[number * 7 % len(CUSTOMERS)]
        own = [story for story in short if story.language == customer.language]
        english = [story for story in short if story.language == "en"]
        choice = own if counts[customer] % 3 == 0 else english  # customers also write in English
        counts[customer] += 1
        planned.append(_planned(number, customer, choice[number * 5 % len(choice)]))
    planned.append(_planned(CONVERSATIONS - 1, CUSTOMERS[-1], long))
    return tuple(planned)


def _planned(number: int, customer: Customer, story: Story) -> PlannedConversation:
    long = number == CONVERSATIONS - 1
    status: Status = "OPEN" if long else _STATUSES[number % len(_STATUSES)]
    turns = story.turns
    if status == "OPEN" and not long:  # ends with a message of the customer, so that an answer is due
        asked = [index for index, turn in enumerate(turns, 1) if turn.speaker == "customer"]
        turns = turns[: asked[number % len(asked)]]
    words = {"{order}": f"A-{4100 + number * 37}", "{name}": customer.name, "{city}": customer.city}
    remaining = CONVERSATIONS - LIVE_CONVERSATIONS - number
    return PlannedConversation(
        number,
        customer,
        _filled(story.title, words),
        story.tags + (("vip",) if customer.number % 9 == 0 else ()),
        tuple(StoryTurn(turn.speaker, _filled(turn.text, words)) for turn in turns),
        status,
        story.rating if status == "CLOSED" and number % 2 == 0 else None,
        max(0, remaining) * (_DAY_MS // 6) + number % 7 * 11 * _MINUTE_MS + 50 * _MINUTE_MS,
        number % len(COLLEAGUES),
    )


def _filled(text: str, words: dict[str, str]) -> str:
    for placeholder, word in words.items():
        text = text.replace(placeholder, word)
    return text


def import_records(
    each: PlannedConversation, now: int, agents: Sequence[str], teams: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the import records of an older conversation and its messages.

    Args:
        now: in milliseconds.
        agents, teams: ids.
    """
    began, external = now - each.age_ms, f"desk-{each.number}"
    ended = began + len(each.turns) * 4 * _MINUTE_MS
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
        agent = {"type": "agent", "id": agents[each.agent]}
        message: dict[str, Any] = {
            "type": "message",
            "externalId": str(index),
            "conversation": external,
            "author": {"type": "contact"} if turn.speaker == "customer" else agent,
            "text": turn.text,
            "createdAt": _iso(began + index * 4 * _MINUTE_MS),
        }
        yield message | ({"internal": True} if turn.speaker == "note" else {})


def _iso(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
