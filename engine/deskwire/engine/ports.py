"""The union of all that the engine needs of a store, for storage, which implements it, and for wiring; a domain asks for its own part.

A `Transaction` is used by the writer's jobs, one after the other, a `Reader` by queries on any thread. Both are put
together from above to below: a domain's own part may hold those of domains that it stands on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from deskwire.engine.accounts.access_tokens import AccessTokenReader, AccessTokenTransaction
from deskwire.engine.accounts.machines import MachineReader, MachineTransaction
from deskwire.engine.accounts.ports import (
    AccountReader,
    AccountTransaction,
    OrganisationReader,
    OrganisationTransaction,
)
from deskwire.engine.accounts.sessions import SessionReader, SessionTransaction
from deskwire.engine.accounts.teams import TeamReader, TeamTransaction
from deskwire.engine.audit.ports import AuditReader, AuditTransaction
from deskwire.engine.audit.push import PushReader, PushTransaction
from deskwire.engine.cluster.ports import ClusterReader, ClusterTransaction
from deskwire.engine.contacts.memory import MemoryReader, MemoryTransaction
from deskwire.engine.contacts.ports import ContactReader, ContactTransaction
from deskwire.engine.conversations.drafts.ports import DraftReader, DraftTransaction
from deskwire.engine.conversations.expiry import ExpiryReader
from deskwire.engine.conversations.held.ports import HeldReader, HeldTransaction
from deskwire.engine.conversations.ports import ConversationReader, ConversationTransaction
from deskwire.engine.conversations.writing_changes import WritingChange
from deskwire.engine.core import store as core
from deskwire.engine.events.ports import Advance, EventReader, EventTransaction, HeadReader
from deskwire.engine.events.types import StoredEvent
from deskwire.engine.idempotency.idempotent_requests import StoredResponseReader, StoredResponseTransaction
from deskwire.engine.importing.ports import ImportReader, ImportTransaction
from deskwire.engine.reports.ports import ReportReader
from deskwire.engine.search.ports import SearchReader, SourceTransaction
from deskwire.engine.snippets.snippet import SnippetReader, SnippetTransaction
from deskwire.engine.stream.ports import StreamReader, StreamTransaction
from deskwire.engine.surveys.ports import SurveyReader, SurveyTransaction
from deskwire.engine.tickets.ports import TicketReader, TicketTransaction
from deskwire.engine.translations.translation import TranslationReader, TranslationTransaction
from deskwire.engine.uploads.ports import UploadReader, UploadTransaction
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.ports import DeliveryReader, DeliveryTransaction
from deskwire.engine.workflows.ports import WorkflowReader, WorkflowTransaction


class Reader(
    ReportReader,
    SearchReader,
    ImportReader,
    TicketReader,
    HeldReader,
    DraftReader,
    ConversationReader,
    ExpiryReader,
    SurveyReader,
    StreamReader,
    DeliveryReader,
    UploadReader,
    StoredResponseReader,
    TranslationReader,
    SnippetReader,
    WorkflowReader,
    EventReader,
    MemoryReader,
    ContactReader,
    AuditReader,
    PushReader,
    TeamReader,
    SessionReader,
    AccessTokenReader,
    MachineReader,
    OrganisationReader,
    AccountReader,
    ClusterReader,
    Protocol,
):
    """Queries. Every method sees all that was acknowledged before it was called."""


class SharedReader(Reader, HeadReader, Protocol):
    """Queries on a store that several nodes share."""


class Transaction(
    Reader,
    SourceTransaction,
    ImportTransaction,
    TicketTransaction,
    HeldTransaction,
    DraftTransaction,
    ConversationTransaction,
    SurveyTransaction,
    StreamTransaction,
    DeliveryTransaction,
    UploadTransaction,
    StoredResponseTransaction,
    TranslationTransaction,
    SnippetTransaction,
    WorkflowTransaction,
    EventTransaction,
    MemoryTransaction,
    ContactTransaction,
    AuditTransaction,
    PushTransaction,
    TeamTransaction,
    SessionTransaction,
    AccessTokenTransaction,
    MachineTransaction,
    OrganisationTransaction,
    AccountTransaction,
    ClusterTransaction,
    Protocol,
):
    """A job's view of the store: what it reads includes what it and earlier jobs wrote."""

    def try_out(self) -> None:
        """Write a little, of which nothing stays: whether it can be committed says whether the disk takes anything."""


class Commit(Struct, frozen=True):
    """The things that a group commit has made known, in commit order; each domain knows the part of it that it follows.

    `due` are times (ms) at which tickets need something, `runs_due` those at which running workflows do, `wakings_due` those
    at which conversations wake. `callers` says whether anything about server keys, machine credentials or projects has changed, `sessions` are the
    ids of browsers' sessions that have ended, and `people` says whether a user or member has lost something. `advances` are the
    moves of the heads of projects; a store that is one node's alone has no such heads. `redacted` are the conversations of which
    a message was redacted or deleted, by their storage keys, and `rewritten` the events that show it, as they are now.
    `held_due` are the times (ms) at which held messages are sent, and `writing` the changes of drafts and held messages.
    """

    events: Sequence[StoredEvent]
    deliveries: Sequence[Delivery]
    erased: frozenset[int]
    due: Sequence[int] = ()
    runs_due: Sequence[int] = ()
    wakings_due: Sequence[int] = ()
    callers: bool = False
    sessions: Sequence[str] = ()
    people: bool = False
    advances: Sequence[Advance] = ()
    redacted: frozenset[int] = frozenset()
    rewritten: Sequence[StoredEvent] = ()
    held_due: Sequence[int] = ()
    writing: Sequence[WritingChange] = ()


Store = core.Store[Reader, Transaction]
