"""The objects in a project, and their JSON in the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

JSON = dict[str, Any]

TIMES: Final = frozenset({"createdAt", "updatedAt", "closedAt", "lastMessageAt", "lastActivityAt"})
IDENTITY: Final = ("name", "email", "phone", "avatar")
EXTENSIONS: Final = frozenset(
    {
        *(f"ticket.{what}" for what in ("created", "changed", "deleted")),
        *("survey.response.created", "survey.response.deleted", "survey.deleted"),
        *("message.redacted", "message.deleted"),
        *("contact.changed", "contact.merged"),
    }
)
"""Types beyond the contract that the feed lists on request; note events go to webhooks only."""

Span = tuple[datetime, datetime]
"""A moment that only the service knows: between these two times."""

Outcome = Literal["sent", "skipped", "either"]
"""The expected end of a delivery; either, if its endpoint was disabled while the delivery was pending."""


def shown(value: Any) -> Any:
    """Return a value without fields that only the service can know; `redactedAt` only shows whether it is set."""
    if isinstance(value, Mapping):
        return {
            name: each and "then" if name == "redactedAt" else shown(each)
            for name, each in value.items()
            if name not in TIMES
        }
    return [shown(each) for each in value] if isinstance(value, list) else value


def exactly(wanted: Any, told: Any) -> bool:
    """Return whether both are the same JSON; Python considers true and 1 equal, JSON does not."""
    if isinstance(wanted, dict) and isinstance(told, dict):
        return wanted.keys() == told.keys() and all(exactly(wanted[name], told[name]) for name in wanted)
    if isinstance(wanted, list) and isinstance(told, list):
        return len(wanted) == len(told) and all(map(exactly, wanted, told))
    return type(wanted) is type(told) and bool(wanted == told)


def now() -> datetime:
    """Return the current time, to the millisecond."""
    at = datetime.now(UTC)
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def iso(at: datetime) -> str:
    """Return a time in the API's format (decisions 1)."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class Moment:
    """The time at which something happened, once it is known."""

    at: datetime | None = None


@dataclass
class Event:
    """An event that is due. `data` must be shown; deleting any object in `kept` deletes the event."""

    type: str
    sequence: int | None
    data: JSON
    kept: tuple[str, ...]
    id: str = ""
    moment: Moment = field(default_factory=Moment)

    @property
    def subject(self) -> str:
        """The id of the event's subject; events of one subject come in order."""
        return about(self.data)


def about(data: JSON) -> str:
    """Return the id of the subject of an event with this data."""
    for name in ("ticket", "response", "survey", "conversation", "contact"):
        if name in data:
            return str(data[name]["id"])
    return str(data["conversationId"])


@dataclass
class Contact:
    """A customer; `number` is its position in the order of creation."""

    number: int
    id: str
    user_id: str
    identity: JSON
    memory: dict[str, JSON] = field(default_factory=dict)
    attributes: JSON = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    merged_into: Contact | None = None

    @property
    def view(self) -> JSON:
        """The contact in the form that events have."""
        return {"id": self.id, "userId": self.user_id, **self.identity}

    @property
    def whole(self) -> JSON:
        """The contact in the form that the API has."""
        return {**self.view, "attributes": self.attributes, "tags": self.tags, "blocked": None}


@dataclass
class Ticket:
    """A ticket, by its fields. `snooze` is when its snooze ends, `woken` whether it was seen awake before its event."""

    id: str
    fields: JSON
    snooze: Span | None = None
    woken: bool = False

    @property
    def view(self) -> JSON:
        """The ticket in the form that the API has."""
        until = None if self.snooze is None else iso(self.snooze[0])
        return {"id": self.id, **self.fields, "snoozedUntil": until}

    def learn(self, told: str | None, at: datetime) -> None:
        """Take the end of the snooze from an answer of this time. Raises AssertionError if it is impossible."""
        if told is None and self.snooze is not None:
            assert at >= self.snooze[0], "woken too early"
            self.snooze, self.woken = None, True
        elif told is not None:
            assert self.snooze is not None, "snoozed by nobody"
            until = datetime.fromisoformat(told)
            assert self.snooze[0] <= until <= self.snooze[1], (self.snooze, told)
            self.snooze = (until, until)

    def wake(self, at: datetime) -> None:
        """Note that an event of this time ended the snooze. Raises AssertionError if it came too early."""
        assert self.woken or (self.snooze is not None and at >= self.snooze[0]), "woken too early"
        self.snooze, self.woken = None, False


@dataclass
class Closing:
    """A closing: when the conversation was opened and closed, and its agent."""

    since: Moment
    at: Moment
    agent: str | None


@dataclass
class Milestones:
    """The facts of a conversation that reports count (see the guide on reports)."""

    created: Moment
    opened: Moment
    asked: Moment | None = None
    answered: Moment | None = None
    answerer: str | None = None
    writer: str | None = None
    waits: bool = False
    unneeded: str | None = None
    """The start of the wait that an agent has marked as needing no answer."""
    closings: list[Closing] = field(default_factory=list)
    reopenings: list[str | None] = field(default_factory=list)
    rater: str | None = None
    written: list[tuple[str, str | None]] = field(default_factory=list)
    """The type of each author with the agent's id, None for others."""


@dataclass
class HeldMessage:
    """A message that an agent held, and its state; withdrawing it moves its text to `draft`."""

    id: str
    conversation: Conversation
    text: str
    since: datetime = field(default_factory=now)
    state: Literal["held", "sent", "draft"] = "held"


@dataclass
class Conversation:
    """A conversation, by its fields, with the messages that its customer sees or saw before their deletion."""

    id: str
    contact: Contact
    visible: bool
    fields: JSON
    milestones: Milestones
    messages: list[JSON] = field(default_factory=list)
    deleted: set[int] = field(default_factory=set)
    tags: list[str] = field(default_factory=list)
    sequence: int = 0
    running: bool = False
    gone: bool = False

    @property
    def listed(self) -> list[JSON]:
        """The messages that are not deleted."""
        return [each for each in self.messages if each["index"] not in self.deleted]

    @property
    def agent(self) -> str | None:
        """The id of the agent in charge: the assignee, or the agent who wrote last."""
        assignee = self.fields["assignee"]
        return self.milestones.writer if assignee is None else assignee["id"]

    @property
    def view(self) -> JSON:
        """The conversation in the form that the API has."""
        contact = self.contact
        who = {"id": contact.id, "userId": contact.user_id}
        who |= {name: contact.identity[name] for name in ("name", "email")}
        closed = self.fields["status"] == "CLOSED"
        return {
            "id": self.id,
            "contact": who,
            **self.fields,
            "closed": closed,
            "sequence": self.sequence,
        }


@dataclass
class Survey:
    """A survey with the definitions of its versions and the responses to it."""

    id: str
    name: str
    versions: list[JSON]
    status: str = "OPEN"
    responses: dict[str, JSON] = field(default_factory=dict)
    gone: bool = False

    @property
    def summary(self) -> JSON:
        """The survey in the form that lists have."""
        counts = {"version": len(self.versions), "responses": len(self.responses)}
        return {"id": self.id, "name": self.name, "status": self.status, **counts}

    @property
    def view(self) -> JSON:
        """The survey in the form that the API has, with its published definition."""
        return {**self.summary, "definition": self.versions[-1]}

    def version(self, number: int) -> JSON:
        """Return one of the survey's versions in the form that lists have."""
        return {"surveyId": self.id, "version": number, "published": number == len(self.versions)}


@dataclass
class Machine:
    """A machine credential.

    Args:
        previous: its secret before the last rotation; `overlaps` if that is still valid.
        ended: older secrets.
    """

    id: str
    permissions: list[str]
    secret: str
    previous: str | None = None
    overlaps: bool = False
    ended: list[str] = field(default_factory=list)
    revoked: bool = False

    @property
    def actor(self) -> JSON:
        """The credential as an actor."""
        return {"type": "machine", "id": self.id, "name": "model"}


@dataclass
class Delivery:
    """An event for an endpoint.

    Args:
        since: index of the endpoint's URL at the time of the event.
        previous: sequence of the conversation's previous event for this endpoint; None if the event has no sequence.
    """

    outcome: Outcome
    since: int
    previous: int | None


@dataclass
class Endpoint:
    """A webhook endpoint, by its fields.

    Args:
        urls: all of its URLs, the current one last.
        deliveries: the events for it, by their ids.
        last: sequence of the newest such event of each conversation.
        notes: the conversations of the notes for it, which the feed does not list.
        noted: all conversations that such notes ever had.
    """

    id: str
    secret: str
    fields: JSON
    urls: list[str]
    deliveries: dict[str, Delivery] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    noted: set[str] = field(default_factory=set)
    gone: bool = False

    @property
    def view(self) -> JSON:
        """The endpoint in the form that the API has, without its last delivery."""
        secret = f"whsec_…{self.secret[-4:]}"
        circuit = {"circuit": "closed", "circuitOpenUntil": None, "circuitReason": None, "failingSince": None}
        outage = {"pausedUntil": None, "held": None, "missed": None}
        return {
            "id": self.id,
            "url": self.urls[-1],
            **self.fields,
            "secret": secret,
            "oldSecretUntil": None,
            **self.health,
            **circuit,
            **outage,
        }

    @property
    def health(self) -> JSON:
        """The endpoint's health: good while it is enabled, because the receiver accepts every delivery."""
        if self.fields["status"] == "enabled":
            return {"healthy": True, "healthCode": None, "healthReason": None, "dropped": 0}
        reason = f"the endpoint is disabled: {self.fields['statusReason']}"
        return {"healthy": False, "healthCode": "disabled", "healthReason": reason, "dropped": 0}

    @property
    def owed(self) -> set[str]:
        """The ids of events that the endpoint must receive."""
        return {event for event, each in self.deliveries.items() if each.outcome == "sent"}

    def take(self, event: Event) -> None:
        """Record an event if it is for this endpoint; types beyond the contract only if the endpoint names them."""
        rest = [] if event.type in EXTENSIONS else [event.type]
        if self.gone or event.type not in (self.fields["events"] or rest):
            return
        previous = None
        if event.sequence is not None:
            about = event.data["conversation"]["id"]
            previous = self.last.get(about, 0)
            self.last[about] = event.sequence
        outcome: Outcome = "sent" if self.fields["status"] == "enabled" else "skipped"
        self.deliveries[event.id] = Delivery(outcome, len(self.urls) - 1, previous)

    def take_note(self, conversation: str) -> None:
        """Record a note of an agent if this endpoint subscribes to notes."""
        if not self.gone and "note.created" in self.fields["events"]:
            self.notes.append(conversation)
            self.noted.add(conversation)

    def stop(self) -> None:
        """Allow pending deliveries to be dropped."""
        for each in self.deliveries.values():
            each.outcome = "either" if each.outcome == "sent" else each.outcome

    def has_taken(self, event: str, path: str, previous: str | None) -> bool:
        """Return whether an event, with this previous sequence, may have been sent to the URL with this path."""
        found = self.deliveries.get(event)
        if found is None or found.outcome == "skipped":
            return False
        at = any(url.endswith(path) for url in self.urls[found.since :])
        return at and previous == (None if found.previous is None else str(found.previous))
