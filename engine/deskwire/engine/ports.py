"""The complete store port: the union of the readers and transactions of all domains.

Storage implements it and wiring uses it, while a domain asks only for its own part. Jobs of the writer get a `Transaction`,
one after another. Queries on any thread get a `Reader`. The bases are listed from the top floor down because a domain's part
may include parts of the domains below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from deskwire.engine.accounts.access_tokens import AccessTokenReader, AccessTokenTransaction
from deskwire.engine.accounts.custom_roles import RoleReader, RoleTransaction
from deskwire.engine.accounts.factors.factor import FactorReader, FactorTransaction
from deskwire.engine.accounts.identity.oidc.identities import IdentityChanges, IdentityReader
from deskwire.engine.accounts.identity.oidc.requests import OidcRequestTransaction
from deskwire.engine.accounts.invitations import InvitationReader, InvitationTransaction
from deskwire.engine.accounts.known_browsers import KnownBrowserTransaction
from deskwire.engine.accounts.machines import MachineReader, MachineTransaction
from deskwire.engine.accounts.notifications import (
    NotificationSettingsReader,
    NotificationSettingsTransaction,
)
from deskwire.engine.accounts.ports import (
    AccountReader,
    AccountTransaction,
    OrganisationReader,
    OrganisationTransaction,
)
from deskwire.engine.accounts.sessions import SessionReader, SessionTransaction
from deskwire.engine.accounts.setup import SetupReader, SetupTransaction
from deskwire.engine.accounts.teams import TeamReader, TeamTransaction
from deskwire.engine.audit.push import PushReader, PushTransaction
from deskwire.engine.audit.trail import AuditReader, AuditTransaction
from deskwire.engine.channels.ports import ChannelReader, ChannelTransaction
from deskwire.engine.cluster.ports import ClusterReader, ClusterTransaction
from deskwire.engine.contacts.memory import MemoryReader, MemoryTransaction
from deskwire.engine.contacts.ports import ContactReader, ContactTransaction
from deskwire.engine.conversations.bulk_jobs import BulkReader, BulkTransaction
from deskwire.engine.conversations.drafts import DraftReader, DraftTransaction
from deskwire.engine.conversations.held_messages import HeldReader, HeldTransaction
from deskwire.engine.conversations.ports import ConversationReader, ConversationTransaction, ExpiryReader
from deskwire.engine.conversations.saved_view import SavedViewReader, SavedViewTransaction
from deskwire.engine.conversations.writing_changes import WritingChange
from deskwire.engine.core import store as core
from deskwire.engine.customers.session import CustomerSessionReader, CustomerSessionTransaction
from deskwire.engine.events.ports import Advance, EventReader, EventTransaction, HeadReader
from deskwire.engine.events.types import StoredEvent
from deskwire.engine.idempotency.idempotent_requests import StoredResponseReader, StoredResponseTransaction
from deskwire.engine.importing.ports import ImportReader, ImportTransaction
from deskwire.engine.mail.ports import MailReader, MailTransaction
from deskwire.engine.push.ports import WebPushReader, WebPushTransaction
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
    CustomerSessionReader,
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
    SavedViewReader,
    BulkReader,
    SnippetReader,
    ChannelReader,
    WorkflowReader,
    EventReader,
    MemoryReader,
    ContactReader,
    AuditReader,
    PushReader,
    TeamReader,
    RoleReader,
    MailReader,
    WebPushReader,
    InvitationReader,
    IdentityReader,
    SessionReader,
    AccessTokenReader,
    MachineReader,
    OrganisationReader,
    AccountReader,
    FactorReader,
    SetupReader,
    NotificationSettingsReader,
    ClusterReader,
    Protocol,
):
    """Queries. Every method sees all changes that were acknowledged before the call."""


class SharedReader(Reader, HeadReader, Protocol):
    """Queries on a store that is shared by several nodes."""


class Transaction(
    Reader,
    FactorTransaction,
    SetupTransaction,
    NotificationSettingsTransaction,
    SourceTransaction,
    ImportTransaction,
    TicketTransaction,
    CustomerSessionTransaction,
    HeldTransaction,
    DraftTransaction,
    ConversationTransaction,
    SurveyTransaction,
    StreamTransaction,
    DeliveryTransaction,
    UploadTransaction,
    StoredResponseTransaction,
    TranslationTransaction,
    SavedViewTransaction,
    BulkTransaction,
    SnippetTransaction,
    ChannelTransaction,
    WorkflowTransaction,
    EventTransaction,
    MemoryTransaction,
    ContactTransaction,
    AuditTransaction,
    PushTransaction,
    TeamTransaction,
    RoleTransaction,
    MailTransaction,
    WebPushTransaction,
    InvitationTransaction,
    IdentityChanges,
    OidcRequestTransaction,
    SessionTransaction,
    KnownBrowserTransaction,
    AccessTokenTransaction,
    MachineTransaction,
    OrganisationTransaction,
    AccountTransaction,
    ClusterTransaction,
    Protocol,
):
    """The view of a job. Its queries see the changes of this job and of earlier ones."""

    def try_out(self) -> None:
        """Write something that leaves no trace, to check whether the database accepts commits."""


class Commit(Struct, frozen=True):
    """The notification of a group commit.

    Each domain subscribes to the attributes that it needs.

    Args:
        events, deliveries: stored events and webhook deliveries, in commit order.
        erased: storage keys of erased conversations and contacts whose queued deliveries are dropped.
        due, runs_due, snoozes_due, held_due: due times (ms) of tickets, running workflows, snoozed conversations, held messages.
        bulk_due: start times (ms) of bulk jobs.
        callers: whether a server key, machine credential, project or channel has changed.
        sessions: ids of browser sessions, customers' sessions and access tokens that have ended.
        people: whether a user or member has lost a right.
        advances: moves of the log heads of projects. Empty unless several nodes share the store.
        redacted: storage keys of conversations in which a message was redacted or deleted.
        rewritten: stored events that contained such a message, in their new form.
        writing: changes of drafts and held messages.
    """

    events: Sequence[StoredEvent]
    deliveries: Sequence[Delivery]
    erased: frozenset[int]
    due: Sequence[int] = ()
    runs_due: Sequence[int] = ()
    snoozes_due: Sequence[int] = ()
    callers: bool = False
    sessions: Sequence[str] = ()
    people: bool = False
    advances: Sequence[Advance] = ()
    redacted: frozenset[int] = frozenset()
    rewritten: Sequence[StoredEvent] = ()
    held_due: Sequence[int] = ()
    writing: Sequence[WritingChange] = ()
    bulk_due: Sequence[int] = ()


Store = core.Store[Reader, Transaction]
