"""The part of a store, and of its commits, that events and their log need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from deskwire.engine.accounts.people import Project
from deskwire.engine.events.types import EventDraft, StoredEvent, Topic


class ProjectHead(NamedTuple):
    """The ends of a project's two lines, each of them counted without a hole: its events and its deliveries.

    Args:
        project: storage key.
        events: position of the newest event.
        deliveries: position of the newest delivery.
    """

    project: int
    events: int
    deliveries: int


class Advance(NamedTuple):
    """The move of a project's head by one commit, which has given all positions between the two."""

    before: ProjectHead
    after: ProjectHead


class LogSegment(NamedTuple):
    """A part of a project's line of events, without a hole.

    Args:
        project: storage key.
        upto: position up to which nothing else lies behind the one that was asked for.
        events: the events, internal ones too, in their order; without topics.
        erased: the conversations whose erasure lies in it, by their storage keys.
        rewritten: the events that a redaction which lies in it has rewritten, as they are now; wherever they lie.
    """

    project: int
    upto: int
    events: Sequence[StoredEvent]
    erased: frozenset[int]
    rewritten: Sequence[StoredEvent] = ()


class EventReader(Protocol):
    """Queries on the log."""

    def events(self, project: int, after: int, limit: int, types: frozenset[str]) -> Sequence[StoredEvent]:
        """Events of a project with a position larger than `after`, in commit order; no internal ones."""

    def agents_events(self, project: int, after: int, limit: int) -> Sequence[StoredEvent]:
        """Events of a project with a position larger than `after`, in commit order, also internal ones."""

    def named_events(
        self, project: int, after: int, limit: int, types: frozenset[str]
    ) -> Sequence[StoredEvent]:
        """Events of a project of these types with a position larger than `after`, in commit order, whoever has them else."""

    def newest_events(
        self, project: int, before: int | None, limit: int, types: frozenset[str], conversation: str | None
    ) -> Sequence[StoredEvent]:
        """Events of a project of these types with a position smaller than `before`, newest first; whoever has them else.

        Args:
            types: at least one.
            conversation: the id of the one conversation whose events are wanted; None for those of all.
        """

    def event(self, project: int, event_id: str) -> StoredEvent | None:
        """The stored event of the project with this id, whoever may have it; None if there is none."""

    def confirmed_sequence(self, conversation: int, event_id: str) -> int | None:
        """The sequence of the conversation's newest stored event that is not newer than this id; None if there is none."""

    def topic_events(
        self, lane: Topic, after: int, limit: int, types: frozenset[str]
    ) -> Sequence[StoredEvent]:
        """Events of a lane with a position larger than `after`, in commit order; no internal ones."""

    def event_position(self, project: int, event_id: str) -> int:
        """The position of the newest event in the project's part of the log that is not newer than `event_id`."""

    def pruned_position(self, project: int) -> int:
        """The position up to which events were pruned from the project's part of the log; 0 if none were."""

    def event_window(self, project: int) -> tuple[str | None, str | None]:
        """Id of the newest event that was pruned from the project's part of the log, and of the newest ever made there.

        The latter also if that was erased. The part of the log may be all of it.
        """

    def last_event_position(self) -> int:
        """The position of the newest event of all, 0 if there is none."""

    def event_id_at(self, project: int, position: int) -> str | None:
        """Id of the project's newest stored event at or before `position`, of those that are not internal."""

    def newest_event(self, project: int) -> tuple[int, str] | None:
        """Return position and id of the project's newest stored event, also if it is internal."""

    def is_event_at(self, project: int, position: int, event_id: str) -> bool:
        """Return whether the event with this id is stored there, and the project's, internal or not."""

    def newest_id_of_any_event(self, project: int) -> str | None:
        """Return the id of the newest event of a project, also of those that only who names them has."""

    def newest_event_id(self, project: int) -> str | None:
        """Return the id of the project's newest stored event, also if it is internal: only an agent may see it."""

    def count_events_after(self, project: int, position: int, limit: int) -> int:
        """Return how many events of the project lie behind `position`, without internal ones, counted up to `limit`."""


class HeadReader(Protocol):
    """Queries by which a node learns of what other nodes have committed; of a store that several nodes share."""

    def heads(self, projects: Sequence[int]) -> Sequence[ProjectHead]:
        """Return the heads of these projects, of each that has one, in any order."""

    def is_replaced(self, project: int, position: int, event_id: str) -> bool:
        """Tell whether there is another event than this one at the position; one that is gone may have been erased."""

    def stretches(self, after: Sequence[tuple[int, int]], limit: int) -> Sequence[LogSegment]:
        """Return what lies behind these positions, each of them of another project.

        Args:
            after: pairs of a project's storage key and a position.
            limit: number of events of each stretch at most; it goes to the line's end unless it has that many.
        """

    def erasures(self, after: Sequence[tuple[int, int]], limit: int) -> Sequence[LogSegment]:
        """Return what lies behind these positions as `stretches`, of all events the erasures and redactions alone."""


class EventTransaction(EventReader, Protocol):
    """The changes of the log."""

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
        """Give the draft its id, position and bytes, and store it; a `directed` one is on no feed or stream.

        A type that agents alone are told of is on their stream alone, whoever appends it. With a `ticket`, a storage
        key, it goes with that.
        """

    def prune_events(self, older_than: int, limit: int, at: int) -> int:
        """Remove up to `limit` events made before `older_than` (ms), never the newest; how many.

        What is still pending for them is dropped `at` this time (ms).
        """


class LogCommit(Protocol):
    """The part of a commit that changes the log."""

    @property
    def events(self) -> Sequence[StoredEvent]:
        """The events that it made, in their order."""

    @property
    def erased(self) -> frozenset[int]:
        """The conversations that it erased, by their storage keys."""

    @property
    def rewritten(self) -> Sequence[StoredEvent]:
        """The events from before it of which something was redacted, as they are now."""


class HeadCommit(LogCommit, Protocol):
    """The part of a commit that moves the heads of projects, in a store that several nodes share."""

    @property
    def advances(self) -> Sequence[Advance]:
        """The moves, one for each project that it has given positions in."""
