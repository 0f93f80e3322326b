"""The ports to the store's events: queries, changes, and the part of a commit that the log reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from deskwire.engine.accounts.people import Project
from deskwire.engine.events.types import EventDraft, StoredEvent, Topic


class ProjectHead(NamedTuple):
    """The newest positions of a project's events and deliveries, both numbered without holes.

    Args:
        project: storage key.
        events: position of the newest event.
        deliveries: position of the newest delivery.
    """

    project: int
    events: int
    deliveries: int


class Advance(NamedTuple):
    """The move of a project's head by one commit, which assigned all positions between the two heads."""

    before: ProjectHead
    after: ProjectHead


class LogSegment(NamedTuple):
    """A contiguous part of a project's events.

    Args:
        project: storage key.
        upto: position up to which the segment is complete.
        events: the events in order, internal ones included, without topics.
        erased: storage keys of the conversations that were erased within the segment.
        rewritten: the current versions of all events that a redaction within the segment rewrote, at any position.
    """

    project: int
    upto: int
    events: Sequence[StoredEvent]
    erased: frozenset[int]
    rewritten: Sequence[StoredEvent] = ()


class EventReader(Protocol):
    """Queries on the event log."""

    def events(self, project: int, after: int, limit: int, types: frozenset[str]) -> Sequence[StoredEvent]:
        """Return a project's events after a position in commit order, without internal ones."""

    def agents_events(self, project: int, after: int, limit: int) -> Sequence[StoredEvent]:
        """Return a project's events after a position in commit order, internal ones included."""

    def named_events(
        self, project: int, after: int, limit: int, types: frozenset[str]
    ) -> Sequence[StoredEvent]:
        """Return a project's events of these types after a position in commit order, for any audience."""

    def newest_events(
        self, project: int, before: int | None, limit: int, types: frozenset[str], conversation: str | None
    ) -> Sequence[StoredEvent]:
        """Return a project's events of these types before a position, newest first, for any audience.

        Args:
            types: at least one.
            conversation: id of the only conversation to include; None for all.
        """

    def event(self, project: int, event_id: str) -> StoredEvent | None:
        """Return the stored event of the project with this id, for any audience; None if there is none."""

    def confirmed_sequence(self, conversation: int, event_id: str) -> int | None:
        """Return the sequence of the conversation's newest stored event up to this id; None if there is none."""

    def topic_events(
        self, topic: Topic, after: int, limit: int, types: frozenset[str]
    ) -> Sequence[StoredEvent]:
        """Return a topic's events after a position in commit order, without internal ones."""

    def event_position(self, project: int, event_id: str) -> int:
        """Return the position of the newest event up to `event_id` in the project's part of the log."""

    def pruned_position(self, project: int) -> int:
        """Return the position up to which the project's part of the log was pruned; 0 if it never was."""

    def event_window(self, project: int) -> tuple[str | None, str | None]:
        """Return the id of the newest pruned event and of the newest event ever stored, which may be erased.

        Both are of the project's part of the log. A store with one log for all projects returns those of the whole log.
        """

    def last_event_position(self) -> int:
        """Return the position of the installation's newest event, 0 if there is none."""

    def event_id_at(self, project: int, position: int) -> str | None:
        """Return the id of the project's newest stored event up to `position`, without internal ones."""

    def newest_event(self, project: int) -> tuple[int, str] | None:
        """Return position and id of the newest stored event that the project's agents may see."""

    def is_event_at(self, project: int, position: int, event_id: str) -> bool:
        """Return whether the project's event with this id is stored at the position, internal or not."""

    def newest_id_of_any_event(self, project: int) -> str | None:
        """Return the id of the project's newest stored event, for any audience."""

    def newest_event_id(self, project: int) -> str | None:
        """Return the id of the newest stored event that the project's agents may see; for agents only."""

    def count_events_after(self, project: int, position: int, limit: int) -> int:
        """Count the project's events after `position`, without internal ones, up to `limit`."""


class HeadReader(Protocol):
    """Queries by which a node follows the commits of the other nodes on a shared store."""

    def heads(self, projects: Sequence[int]) -> Sequence[ProjectHead]:
        """Return the heads of those of these projects that have one, in any order."""

    def is_replaced(self, project: int, position: int, event_id: str) -> bool:
        """Return whether another event is stored at the position; False if none is, because this one may be erased."""

    def segments(self, after: Sequence[tuple[int, int]], limit: int) -> Sequence[LogSegment]:
        """Return the segments after these positions, one for each project that has one.

        Args:
            after: pairs of a project's storage key and a position.
            limit: maximum number of events in a segment. A segment with fewer events ends at the project's head.
        """

    def erasures(self, after: Sequence[tuple[int, int]], limit: int) -> Sequence[LogSegment]:
        """Return segments as `segments` does, with erasures and redactions only."""


class EventTransaction(EventReader, Protocol):
    """Changes to the event log."""

    def append_event(
        self,
        project: Project,
        draft: EventDraft,
        conversation: int | None,
        at: int,
        *,
        directed: bool = False,
        ticket: int | None = None,
    ) -> StoredEvent:
        """Assign id and position to the draft, store it, and return the event.

        Args:
            conversation: storage key or lane; see `StoredEvent`.
            at: time of the event, in milliseconds.
            directed: True for an event that goes to one endpoint only and is in no feed and on no stream.
            ticket: storage key of a ticket; the event is erased together with it.
        """

    def prune_events(self, older_than: int, limit: int, at: int) -> int:
        """Delete up to `limit` events made before `older_than` (ms), never the newest, and return their number.

        Their pending deliveries are dropped as of the time `at` (ms).
        """


class LogCommit(Protocol):
    """The part of a commit that changes the event log."""

    @property
    def events(self) -> Sequence[StoredEvent]:
        """The new events, in order."""

    @property
    def erased(self) -> frozenset[int]:
        """The lanes that the commit erased: conversations by their storage keys, contacts, tickets, responses."""

    @property
    def rewritten(self) -> Sequence[StoredEvent]:
        """The current versions of earlier events that the commit redacted."""


class HeadCommit(LogCommit, Protocol):
    """The part of a commit that moves the heads of projects, in a store that several nodes share."""

    @property
    def advances(self) -> Sequence[Advance]:
        """The moves of heads, one for each project in which the commit assigned positions."""
