"""What there is in a project, and how the API shows it."""

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
"""Types beyond the contract that the feed lists for those who name them; those of notes are on webhooks alone."""

Span = tuple[datetime, datetime]
"""A moment that only the service knows: not before the one, not after the other."""

Outcome = Literal["sent", "skipped", "either"]
"""What becomes of a delivery; either, when its endpoint was disabled behind it."""


def shown(value: Any) -> Any:
    """A value without what only the service can know; of when a message was redacted, whether it was."""
    if isinstance(value, Mapping):
        return {
            name: each and "then" if name == "redactedAt" else shown(each)
            for name, each in value.items()
            if name not in TIMES
        }
    return [shown(each) for each in value] if isinstance(value, list) else value


def exactly(wanted: Any, told: Any) -> bool:
    """Whether both are the same JSON: to Python true and 1 are equal, and they are not."""
    if isinstance(wanted, dict) and isinstance(told, dict):
        return wanted.keys() == told.keys() and all(exactly(wanted[name], told[name]) for name in wanted)
    if isinstance(wanted, list) and isinstance(told, list):
        return len(wanted) == len(told) and all(map(exactly, wanted, told))
    return type(wanted) is type(told) and bool(wanted == told)


def now() -> datetime:
    """This moment, to the millisecond."""
    at = datetime.now(UTC)
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def iso(at: datetime) -> str:
    """A time as the API shows it (decisions 1)."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class Moment:
    """When something happened, once that is known."""

    at: datetime | None = None


@dataclass
class Event:
    """An event that is due. `data` is what it must show; the deletion of each of `kept` takes it away."""

    type: str
    sequence: int | None
    data: JSON
    kept: tuple[str, ...]
    id: str = ""
    moment: Moment = field(default_factory=Moment)

    @property
    def subject(self) -> str:
        """What it is about: events of one subject come in order."""
        return about(self.data)


def about(data: JSON) -> str:
    """The id of what an event with this data is about."""
    for name in ("ticket", "response", "survey", "conversation", "contact"):
        if name in data:
            return str(data[name]["id"])
    return str(data["conversationId"])


@dataclass
class Contact:
    """A customer; `number` is its place among all that were made."""

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
        """As events show it."""
        return {"id": self.id, "userId": self.user_id, **self.identity}

    @property
    def whole(self) -> JSON:
        """As the API shows it."""
        return {**self.view, "attributes": self.attributes, "tags": self.tags}


@dataclass
class Ticket:
    """A ticket, by its fields; `snooze` is until when it is put aside, `woken` whether it was seen to be awake before an event said so."""

    id: str
    fields: JSON
    snooze: Span | None = None
    woken: bool = False

    @property
    def view(self) -> JSON:
        """As the API shows it."""
        until = None if self.snooze is None else iso(self.snooze[0])
        return {"id": self.id, **self.fields, "snoozedUntil": until}

    def learn(self, told: str | None, at: datetime) -> None:
        """Take from an answer of this moment when its snooze ends, or has ended. Raises AssertionError if it can't."""
        if told is None and self.snooze is not None:
            assert at >= self.snooze[0], "woken too early"
            self.snooze, self.woken = None, True
        elif told is not None:
            assert self.snooze is not None, "snoozed by nobody"
            until = datetime.fromisoformat(told)
            assert self.snooze[0] <= until <= self.snooze[1], (self.snooze, told)
            self.snooze = (until, until)

    def wake(self, at: datetime) -> None:
        """Take from an event of this moment that its time has come. Raises AssertionError if it has not."""
        assert self.woken or (self.snooze is not None and at >= self.snooze[0]), "woken too early"
        self.snooze, self.woken = None, False


@dataclass
class Closing:
    """A closing: since when the conversation was open, when it was closed, and which agent had it."""

    since: Moment
    at: Moment
    agent: str | None


@dataclass
class Milestones:
    """What reports count of a conversation (the guide on reports)."""

    created: Moment
    opened: Moment
    asked: Moment | None = None
    answered: Moment | None = None
    answerer: str | None = None
    writer: str | None = None
    waits: bool = False
    closings: list[Closing] = field(default_factory=list)
    reopenings: list[str | None] = field(default_factory=list)
    rater: str | None = None
    written: list[tuple[str, str | None]] = field(default_factory=list)
    """The type of each author with the agent's id, None for others."""


@dataclass
class HeldMessage:
    """A message that an agent held since a time, and its state: its text is in a `draft` after it was taken back."""

    id: str
    conversation: Conversation
    text: str
    since: datetime = field(default_factory=now)
    state: Literal["held", "sent", "draft"] = "held"


@dataclass
class Conversation:
    """A conversation, by its fields, with the messages that its customer sees, or has seen before they were deleted."""

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
        """The messages that are there."""
        return [each for each in self.messages if each["index"] not in self.deleted]

    @property
    def agent(self) -> str | None:
        """The id of the agent who has it: to whom it is assigned, or who wrote last."""
        assignee = self.fields["assignee"]
        return self.milestones.writer if assignee is None else assignee["id"]

    @property
    def view(self) -> JSON:
        """As the API shows it."""
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
        """As lists show it."""
        counts = {"version": len(self.versions), "responses": len(self.responses)}
        return {"id": self.id, "name": self.name, "status": self.status, **counts}

    @property
    def view(self) -> JSON:
        """As the API shows it: with its published definition."""
        return {**self.summary, "definition": self.versions[-1]}

    def version(self, number: int) -> JSON:
        """One of its versions, as lists show it."""
        return {"surveyId": self.id, "version": number, "published": number == len(self.versions)}


@dataclass
class Machine:
    """A machine credential.

    Args:
        former: its secret before the last rotation; `overlaps` if that is good as well.
        ended: secrets from before that one.
    """

    id: str
    permissions: list[str]
    secret: str
    former: str | None = None
    overlaps: bool = False
    ended: list[str] = field(default_factory=list)
    revoked: bool = False

    @property
    def actor(self) -> JSON:
        """As whoever did something."""
        return {"type": "machine", "id": self.id, "name": "model"}


@dataclass
class Delivery:
    """An event for an endpoint.

    Args:
        since: which of the endpoint's URLs was the present one then.
        previous: the sequence of the conversation's event before that was for it; None for an event without one.
    """

    outcome: Outcome
    since: int
    previous: int | None


@dataclass
class Endpoint:
    """An endpoint of webhooks, by its fields.

    Args:
        urls: those that it has had, the present one last.
        deliveries: the events that were for it, by their ids.
        last: of each conversation the sequence of the newest of them.
        notes: the conversations of the notes that were for it, of which the feed tells nothing.
        noted: all of these that there have ever been.
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
        """As the API shows it, but for the delivery that ended last."""
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
        """Whether it gets everything: always while it is enabled, because the receiver takes every delivery."""
        if self.fields["status"] == "enabled":
            return {"healthy": True, "healthCode": None, "healthReason": None, "dropped": 0}
        reason = f"the endpoint is disabled: {self.fields['statusReason']}"
        return {"healthy": False, "healthCode": "disabled", "healthReason": reason, "dropped": 0}

    @property
    def owed(self) -> set[str]:
        """The events that must come to it."""
        return {event for event, each in self.deliveries.items() if each.outcome == "sent"}

    def take(self, event: Event) -> None:
        """Note an event that has happened, if it is for this endpoint; none beyond the contract unless it is named."""
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
        """Note that agents have written something that they alone see, if this endpoint is told of such."""
        if not self.gone and "note.created" in self.fields["events"]:
            self.notes.append(conversation)
            self.noted.add(conversation)

    def stop(self) -> None:
        """What has not been sent yet is not sent any more."""
        for each in self.deliveries.values():
            each.outcome = "either" if each.outcome == "sent" else each.outcome

    def has_taken(self, event: str, path: str, previous: str | None) -> bool:
        """Whether an event may have been sent to the URL with this path, as the one behind that sequence."""
        found = self.deliveries.get(event)
        if found is None or found.outcome == "skipped":
            return False
        at = any(url.endswith(path) for url in self.urls[found.since :])
        return at and previous == (None if found.previous is None else str(found.previous))
