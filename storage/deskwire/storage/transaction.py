"""The store's two faces put together from the groups of tables."""

from __future__ import annotations

import sqlite3

from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.core.errors import StaleState
from deskwire.engine.events.types import StoredEvent, contact_lane
from deskwire.engine.tickets.ticket import Ticket
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.storage.search.lookup import SearchReads
from deskwire.storage.tables.accounts.organisations import OrganisationReads, OrganisationWrites
from deskwire.storage.tables.accounts.people import PeopleReads, PeopleWrites
from deskwire.storage.tables.accounts.sessions import SessionReads, SessionWrites
from deskwire.storage.tables.accounts.teams import TeamReads, TeamWrites
from deskwire.storage.tables.audit import AuditReads, AuditWrites
from deskwire.storage.tables.contacts.contacts import ContactReads, ContactWrites
from deskwire.storage.tables.contacts.lists import ContactListReads
from deskwire.storage.tables.contacts.memory import MemoryReads, MemoryWrites
from deskwire.storage.tables.conversations.activity import ActivityReads, ActivityWrites
from deskwire.storage.tables.conversations.agent_view import AgentViewReads
from deskwire.storage.tables.conversations.conversations import ConversationReads, ConversationWrites
from deskwire.storage.tables.conversations.expiry import ExpiryReads
from deskwire.storage.tables.conversations.imports import ImportReads, ImportWrites
from deskwire.storage.tables.conversations.lists import ConversationListReads
from deskwire.storage.tables.conversations.seen import SeenReads, SeenWrites
from deskwire.storage.tables.events.consumers import ConsumerReads, ConsumerWrites
from deskwire.storage.tables.events.events import EventReads, EventWrites
from deskwire.storage.tables.idempotency import AnswerReads, AnswerWrites
from deskwire.storage.tables.search import SearchSourceReads, SearchSourceWrites
from deskwire.storage.tables.snippets import SnippetReads, SnippetWrites
from deskwire.storage.tables.surveys.responses import SurveyResponseReads, SurveyResponseWrites
from deskwire.storage.tables.surveys.surveys import SurveyReads, SurveyWrites
from deskwire.storage.tables.tickets.lists import TicketListReads
from deskwire.storage.tables.tickets.tickets import TicketReads, TicketWrites
from deskwire.storage.tables.translations import TranslationReads, TranslationWrites
from deskwire.storage.tables.uploads import UploadReads, UploadWrites
from deskwire.storage.tables.webhooks.deliveries import DeliveryReads, DeliveryWrites
from deskwire.storage.tables.webhooks.delivery_log import DeliveryLogReads
from deskwire.storage.tables.webhooks.endpoints import EndpointReads, EndpointWrites
from deskwire.storage.tables.workflows import WorkflowReads, WorkflowWrites


class SqliteReader(
    SearchReads,  # first, as it needs those of conversations
    ConversationReads,
    ConversationListReads,
    ActivityReads,
    AgentViewReads,
    SeenReads,
    ContactReads,
    ContactListReads,
    EventReads,
    EndpointReads,
    DeliveryReads,
    DeliveryLogReads,
    OrganisationReads,
    PeopleReads,
    SessionReads,
    ConsumerReads,
    MemoryReads,
    TranslationReads,
    SnippetReads,
    SurveyReads,
    SurveyResponseReads,
    TeamReads,
    TicketListReads,
    TicketReads,
    UploadReads,
    AnswerReads,
    ExpiryReads,
    WorkflowReads,
    ImportReads,
    AuditReads,
    SearchSourceReads,
):
    """`ports.Reader` on one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.conn = connection


class SqliteTransaction(
    SqliteReader,
    ConversationWrites,
    SeenWrites,
    ActivityWrites,
    ContactWrites,
    EventWrites,
    EndpointWrites,
    DeliveryWrites,
    OrganisationWrites,
    PeopleWrites,
    SessionWrites,
    ConsumerWrites,
    MemoryWrites,
    TranslationWrites,
    SnippetWrites,
    SurveyWrites,
    SurveyResponseWrites,
    TeamWrites,
    TicketWrites,
    UploadWrites,
    AnswerWrites,
    WorkflowWrites,
    ImportWrites,
    AuditWrites,
    SearchSourceWrites,
):
    """`ports.Transaction` on the writer's connection.

    What a group commit makes known to the rest of the program gathers in `published`, `deliveries`, `erased`,
    `due`, `runs_due`, `wakings_due` and `sessions_ended` until it is durable. `scrub_wanted` says that text was deleted
    besides, `callers_changed` that something about server keys or projects is another, `people_changed` that a user has
    another password or is gone, or a member another role: the database says so, whoever has changed it.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.published: list[StoredEvent] = []
        self.deliveries: list[Delivery] = []
        self.erased: set[int] = set()
        self.due: list[int] = []
        self.runs_due: list[int] = []
        self.sessions_ended: list[str] = []
        self.wakings_due: list[int] = []
        self.callers_changed = False
        self.people_changed = False
        connection.create_function("callers_change", 0, self._note_callers)
        for table, what in (("server_keys", "UPDATE OF hash, project, revoked_at"), ("projects", "UPDATE")):
            for change in ("INSERT", what, "DELETE"):
                connection.execute(
                    f"CREATE TEMP TRIGGER IF NOT EXISTS {table}_{change.split()[0]} AFTER {change} ON main.{table} "
                    "BEGIN SELECT callers_change(); END"
                )
        connection.create_function("session_ends", 1, self.sessions_ended.append)
        connection.execute(
            "CREATE TEMP TRIGGER IF NOT EXISTS sessions_DELETE AFTER DELETE ON main.sessions "
            "BEGIN SELECT session_ends(OLD.id); END"
        )
        connection.create_function("people_change", 0, self._note_people)
        for table, what in (("memberships", "UPDATE"), ("users", "UPDATE OF generation")):
            for change in (what, "DELETE"):
                connection.execute(
                    f"CREATE TEMP TRIGGER IF NOT EXISTS {table}_{change.split()[0]} AFTER {change} ON main.{table} "
                    "BEGIN SELECT people_change(); END"
                )
        connection.create_function("contacts_change", 0, self.forget_claims)
        for change in ("UPDATE", "DELETE"):
            connection.execute(
                f"CREATE TEMP TRIGGER IF NOT EXISTS contacts_{change} AFTER {change} ON main.contacts "
                "BEGIN SELECT contacts_change(); END"
            )
        self.forget_claims()
        self.start_events()
        self.start_endpoints()
        self.start_deliveries()

    def forget(self) -> None:
        """Read anew what was remembered: after a rollback it may be what never was."""
        self.forget_claims()
        self.forget_endpoints()

    def _note_callers(self) -> None:
        self.callers_changed = True

    def _note_people(self) -> None:
        self.people_changed = True

    def erase_conversation(self, state: Conversation) -> None:
        if any(event.conversation == state.rowid for event in self.published):
            raise StaleState("events of the conversation are in this very commit, and nobody has had them")
        self.erase_deliveries(state.rowid)
        self.erase_events(state.rowid)
        self.detach_uploads(state.rowid)
        self.erase_conversation_rows(state.rowid)

    def erase_ticket(self, ticket: Ticket) -> None:
        self.erase_ticket_events(ticket.rowid)
        self.erase_ticket_rows(ticket)

    def erase_contact(self, contact: int) -> None:
        self.erase_deliveries(contact_lane(contact))
        self.erase_events(contact_lane(contact))
        self.forget_contact_channel(contact)
        self.clear_memory(contact)
        self.erase_contact_row(contact)

    def prune_events(self, older_than: int, limit: int, at: int) -> int:
        pruned, upto = self.prune_event_rows(older_than, limit)
        if pruned:
            self.drop_without_event(upto, at)
        return pruned
