"""What the engine needs of a store; `deskwire.storage` implements it on SQLite.

A `Transaction` is used by the writer's jobs, one after the other, a `Reader` by queries on any thread. Both are
plain and synchronous: a job computes from its arguments and the transaction alone, as it may be run
again when a neighbour in its group commit fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from deskwire.engine.audit.ports import AuditReader, AuditTransaction
from deskwire.engine.contact import Contact
from deskwire.engine.conversation import Conversation, Message
from deskwire.engine.core import store as core
from deskwire.engine.deliveries import (
    Attempt,
    Delivery,
    DeliveryFilter,
    DeliveryRecord,
    DeliveryStatus,
    HeldBack,
)
from deskwire.engine.delivery.circuit import Circuit
from deskwire.engine.endpoint import Endpoint
from deskwire.engine.events import Draft, StoredEvent
from deskwire.engine.expiry import ExpiryReader
from deskwire.engine.idempotency.ports import AnswerReader, AnswerTransaction
from deskwire.engine.importing.ports import ImportReader, ImportTransaction
from deskwire.engine.lane import Lane
from deskwire.engine.listing import ConversationFilter, Listed, Page
from deskwire.engine.memory import MemoryReader, MemoryTransaction
from deskwire.engine.organisations.ports import OrganisationReader, OrganisationTransaction
from deskwire.engine.people import Project, Role, ServerKey, User
from deskwire.engine.surveys.ports import SurveyReader, SurveyTransaction
from deskwire.engine.teams import TeamReader, TeamTransaction
from deskwire.engine.tickets.ports import TicketReader, TicketTransaction
from deskwire.engine.translation import TranslationReader, TranslationTransaction
from deskwire.engine.uploads.ports import UploadReader, UploadTransaction
from deskwire.engine.value import value
from deskwire.engine.workflows.ports import WorkflowReader, WorkflowTransaction

T = TypeVar("T")


@value
class Claimed:
    """A conversation that a commit may change: its contact, and what each endpoint was sent last."""

    contact: Contact
    routed: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class StreamConsumer:
    """Who holds a stream channel, or held it last, and how far that consumer has confirmed (decisions 5).

    Args:
        project: storage key.
        generation: grows by one with each holder; an older one may change nothing.
        position: log position up to which everything is confirmed.
        superseded: ids that were taken over from and may not come back yet, oldest first.
        since, updated_at: when it took the channel, and when the position was saved, in milliseconds.
    """

    project: int
    channel: str
    consumer_id: str
    generation: int
    position: int
    superseded: tuple[str, ...]
    since: int
    updated_at: int


class Reader(
    AnswerReader,
    TeamReader,
    TicketReader,
    SurveyReader,
    OrganisationReader,
    MemoryReader,
    TranslationReader,
    UploadReader,
    ExpiryReader,
    WorkflowReader,
    ImportReader,
    AuditReader,
    Protocol,
):
    """Queries. Every method sees all that was acknowledged before it was called."""

    def conversation(self, project: int, conversation_id: str) -> tuple[Conversation, Contact] | None:
        """The conversation with its contact, None if this project has none with that id."""

    def conversations(
        self, project: int, wanted: ConversationFilter, after: Page | None, limit: int
    ) -> Sequence[Listed]:
        """Conversations, newest activity first."""

    def message_rowid(self, conversation: int, message_id: str, *, internal: bool) -> int | None:
        """Where a message stands; a note is found only with `internal`."""

    def messages(
        self,
        conversation: int,
        *,
        internal: bool,
        after: int | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> Sequence[Message]:
        """Messages, oldest first; with `before` alone the last `limit` in front of it."""

    def network_logs(self, conversation: int) -> bytes | None:
        """The snapshot as it was sent."""

    def conversation_events(self, conversation: int, after: int, limit: int) -> Sequence[bytes]:
        """Stored envelopes with a sequence larger than `after`."""

    def contact(self, project: int, user_id: str) -> Contact | None:
        """The contact with the backend's `user_id`."""

    def contact_by_id(self, project: int, contact_id: str) -> Contact | None:
        """The contact with this `con_` id."""

    def conversation_ids(self, contact: int) -> Sequence[str]:
        """The ids of all conversations of a contact."""

    def erasing(self) -> Sequence[tuple[str, Contact]]:
        """Contacts whose erasure has begun and not ended, each with its project's id."""

    def events(self, project: int, after: int, limit: int, types: frozenset[str]) -> Sequence[StoredEvent]:
        """Events of a project with a position larger than `after`, in commit order."""

    def lane_events(self, lane: Lane, after: int, limit: int, types: frozenset[str]) -> Sequence[StoredEvent]:
        """Events of a lane with a position larger than `after`, in commit order."""

    def event_position(self, event_id: str) -> int:
        """The position of the newest event, of any project, that is not newer than `event_id`."""

    def event_window(self) -> tuple[str | None, str | None]:
        """Id of the newest event that was pruned, and of the newest ever made, also if that was erased."""

    def last_event_position(self) -> int:
        """The position of the newest event of all, 0 if there is none."""

    def has_projects(self) -> bool:
        """Whether there is any project."""

    def event_id_at(self, project: int, position: int) -> str | None:
        """Id of the project's newest stored event at or before `position`."""

    def events_behind(self, project: int, position: int, limit: int) -> int:
        """How many events of the project lie behind `position`, counted up to `limit`."""

    def stream_consumer(self, project: int, channel: str) -> StreamConsumer | None:
        """Who holds the channel, or held it last."""

    def stream_consumers(self, project: int) -> Sequence[StreamConsumer]:
        """Who holds the project's channels, or held them last, by channel name."""

    def project_by_stream_key(self, stream_key: str) -> Project | None:
        """The project of a stream key."""

    def project(self, project_id: str) -> Project | None:
        """The project with this id."""

    def server_key(self, key_hash: bytes) -> ServerKey | None:
        """The key with this SHA-256 hash, revoked ones included."""

    def user(self, user_id: str) -> User | None:
        """The user with this id."""

    def user_by_email(self, email: str) -> User | None:
        """The user with this e-mail address, whatever its case."""

    def role(self, organisation: int, user: int) -> Role | None:
        """The user's role there, None for no member."""

    def member_name(self, organisation: int, user_id: str) -> str | None:
        """The name of a user of the organisation."""

    def endpoints(self, project: int | None = None) -> Sequence[Endpoint]:
        """Webhook endpoints, oldest first, of one project or of all; those removed left out."""

    def unserved_endpoints(self) -> Sequence[int]:
        """Those that are disabled, or removed with deliveries left."""

    def pending_deliveries(
        self,
        endpoint: int,
        after: int,
        limit: int,
        *,
        upto: int | None = None,
        redeliveries: bool | None = None,
    ) -> Sequence[Delivery]:
        """Deliveries still to be made, with positions larger than `after`, and not larger than `upto`, in that order.

        `redeliveries` chooses those that repeat another one, or those that do not.
        """

    def due_retries(
        self, endpoint: int, limit: int, *, upto: int, unread: tuple[int, int], redelivered_upto: int
    ) -> Sequence[Delivery]:
        """Pending deliveries of which an attempt was made, the one that is due first in front.

        Of redeliveries those up to the position `redelivered_upto`, of others those up to `upto` that are not between
        the positions `unread`, the first left out.
        """

    def held_back(self, endpoint: int) -> HeldBack:
        """How many of the endpoint's deliveries an outage keeps waiting."""

    def delivery_records(
        self, endpoint: int, wanted: DeliveryFilter, before: int | None, limit: int
    ) -> Sequence[DeliveryRecord]:
        """An endpoint's delivery log, newest first, of positions smaller than `before`."""

    def delivery_record(self, project: int, delivery_id: str) -> DeliveryRecord | None:
        """The delivery with this id, None if it is none of this project's."""

    def recoverable(self, endpoint: int, after: str) -> tuple[int, int]:
        """How many deliveries of events behind this event id ended dropped or skipped and were not repeated;
        and how many more of them carry an event that is no longer stored."""


class Transaction(
    Reader,
    AnswerTransaction,
    TeamTransaction,
    TicketTransaction,
    SurveyTransaction,
    OrganisationTransaction,
    MemoryTransaction,
    TranslationTransaction,
    UploadTransaction,
    WorkflowTransaction,
    ImportTransaction,
    AuditTransaction,
    Protocol,
):
    """A job's view of the store: what it reads includes what it and earlier jobs wrote."""

    def try_out(self) -> None:
        """Write a little, of which nothing stays: whether it can be committed says whether the disk takes anything."""

    def claim(self, state: Conversation) -> Claimed:
        """Make sure that `state` is what is stored. Raises StaleState if it is not."""

    def insert_conversation(
        self, state: Conversation, contact: int, routed: Mapping[int, int]
    ) -> Conversation:
        """Store a new conversation; returns it with its `rowid`."""

    def save_conversation(self, before: Conversation, state: Conversation, routed: Mapping[int, int]) -> None:
        """Store the changed conversation, which was `before`, a lower `revision`."""

    def erase_conversation(self, state: Conversation) -> None:
        """Remove the conversation with all that belongs to it, events and deliveries included.

        Raises StaleState if this commit has events of it yet to be told: they would be lost.
        """

    def insert_message(self, conversation: int, message: Message) -> None:
        """Store a message."""

    def put_network_logs(self, conversation: int, snapshot: bytes, at: int) -> None:
        """Store a snapshot in place of the previous one."""

    def append_event(
        self, project: Project, draft: Draft, conversation: int | None, at: int, *, directed: bool = False
    ) -> StoredEvent:
        """Give the draft its id, position and bytes, and store it; a `directed` one is on no feed or stream."""

    def routed_endpoints(self, project: int) -> Sequence[Endpoint]:
        """The endpoints that new events are for, disabled ones too; cheap. Their circuits may be stale."""

    def insert_delivery(
        self,
        endpoint: int,
        event: StoredEvent,
        lane: int | None,
        previous: int | None,
        at: int,
        *,
        skipped: str | None = None,
    ) -> Delivery:
        """Store a delivery in this lane: pending and due at once, or `skipped` for this reason."""

    def redeliver(self, position: int, at: int) -> Delivery | None:
        """Store a pending delivery that repeats this one; None if its event is no longer stored."""

    def recover(self, endpoint: int, after: str, at: int, limit: int) -> int:
        """Repeat up to `limit` of the deliveries that `recoverable` counts, oldest first; how many."""

    def record_retry(self, planned: Delivery, attempt: Attempt) -> bool:
        """Store an attempt, and the delivery as it is planned now; False, and nothing is stored, if it is not pending."""

    def record_end(
        self,
        delivery: Delivery,
        attempt: Attempt,
        status: DeliveryStatus,
        reason: str | None,
        *,
        missed: bool = False,
    ) -> bool:
        """Store a delivery's last attempt, and how it ended; False, and nothing is stored, if it is not pending.

        `missed` says that it is to be sent once more, see `catch_up`.
        """

    def end_delivery(self, delivery: Delivery, status: DeliveryStatus, reason: str, at: int) -> bool:
        """End a delivery without an attempt; False, and nothing is stored, if it is no longer pending."""

    def end_too_old(self, endpoint: int, before: int, reason: str, at: int, limit: int) -> int:
        """End up to `limit` pending deliveries as skipped that were made before this time (ms); how many."""

    def catch_up(self, endpoint: int, after: str, at: int, limit: int) -> int:
        """Repeat up to `limit` missed deliveries of events behind this event id, oldest first; how many.

        Those of older events, and of events that are no longer stored, are not missed any more.
        """

    def close_deliveries(self, endpoint: int, at: int, limit: int) -> int:
        """Do a part of what an endpoint leaves behind; how many rows it was, 0 when there is nothing left.

        Of a disabled one up to `limit` pending deliveries end as skipped. Of a removed one that many are
        deleted, and at last itself.
        """

    def insert_contact(self, project: int, contact: Contact) -> Contact:
        """Store a new contact; returns it with its `rowid`."""

    def save_contact(self, contact: Contact) -> None:
        """Store a changed contact."""

    def mark_erasing(self, contact: int) -> None:
        """Begin a contact's erasure: from here on it is not found any more."""

    def erase_contact(self, contact: int) -> None:
        """Remove a contact that has no conversation left, with its own events and their deliveries."""

    def insert_endpoint(self, endpoint: Endpoint) -> Endpoint:
        """Store a new endpoint; returns it with its `rowid`."""

    def save_endpoint(self, endpoint: Endpoint) -> None:
        """Store a changed endpoint; its last delivery and its circuit stay as they are stored."""

    def reset_circuit(self, endpoint: int) -> None:
        """Close an endpoint's circuit; what it has held is released."""

    def note_deliveries(
        self, endpoint: int, at: int, status: DeliveryStatus, succeeded_at: int | None
    ) -> None:
        """Store when (ms) and how the last delivery ended, and when the last attempt began that succeeded."""

    def save_circuit(self, endpoint: int, circuit: Circuit) -> None:
        """Store the circuit."""

    def release_held(self, endpoint: int, upto: int | None) -> int:
        """Store, and return, up to which position deliveries were held, now that the circuit is closed.

        That is `upto`, or if it is None that of the newest pending one.
        """

    def forget_held(self, endpoint: int) -> None:
        """Store that all that a circuit had held is sent."""

    def renew_seals(self, renewed: Callable[[bytes], bytes]) -> int:
        """Store the endpoints' sealed secrets as `renewed` makes them; how many have changed."""

    def forget_old_secrets(self, now: int) -> int:
        """Remove the secrets that do not sign any more at `now` (ms); how many."""

    def take_channel(
        self, project: int, channel: str, consumer_id: str, position: int, superseded: Sequence[str], at: int
    ) -> int:
        """Make `consumer_id` the channel's holder, starting at `position`; returns its generation."""

    def confirm_position(
        self, project: int, channel: str, generation: int, position: int, superseded: Sequence[str], at: int
    ) -> bool:
        """Save how far a holder has confirmed; False, and no change, if the generation is not the latest."""

    def forget_consumers(self, before: int, kept: Collection[tuple[int, str]]) -> None:
        """Remove conversation and contact channels untouched since `before` (ms), but for those `kept`."""

    def insert_organisation(self, organisation_id: str, name: str, at: int) -> int:
        """Store a new organisation; returns its storage key."""

    def insert_project(
        self, project_id: str, organisation: int, name: str, stream_key: str, at: int
    ) -> Project:
        """Store a new project."""

    def insert_user(self, user_id: str, email: str, name: str, password_hash: str | None, at: int) -> User:
        """Store a new user."""

    def insert_membership(self, organisation: int, user: int, role: Role, at: int) -> None:
        """Make a user a member."""

    def insert_key(self, key_id: str, project: int, key_hash: bytes, tail: str, label: str, at: int) -> None:
        """Store a new server key, as its hash and last characters."""

    def touch_key(self, key: int, at: int) -> None:
        """Note when a server key was last used."""

    def prune_deliveries(self, older_than: int, limit: int) -> int:
        """Remove up to `limit` finished deliveries made before `older_than` (ms); how many."""

    def prune_events(self, older_than: int, limit: int, at: int) -> int:
        """Remove up to `limit` events made before `older_than` (ms), never the newest; how many.

        What is still pending for them is dropped `at` this time (ms).
        """


Brief = core.Brief


class Store(core.Store[Reader, Transaction], Protocol):
    """The store as whoever wires the program knows it."""

    def peek(self, query: Callable[[Reader], T]) -> T:
        """Run `query` here and now: only for one row by its key, where a thread costs ten times more."""
