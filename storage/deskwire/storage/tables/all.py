"""All groups of queries and changes, combined for the stores of both databases."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.core.errors import StaleState
from deskwire.engine.events.types import contact_lane, response_lane, ticket_lane
from deskwire.engine.tickets.ticket import Ticket
from deskwire.storage.tables.accounts.factors import FactorReads, FactorWrites
from deskwire.storage.tables.accounts.links import LinkReads
from deskwire.storage.tables.accounts.machines import MachineReads, MachineWrites
from deskwire.storage.tables.accounts.notifications import NotificationSettingsReads
from deskwire.storage.tables.accounts.oidc import IdentityReads, OidcWrites
from deskwire.storage.tables.accounts.organisation_changes import OrganisationWrites
from deskwire.storage.tables.accounts.organisations import OrganisationReads
from deskwire.storage.tables.accounts.people import PeopleReads, PeopleWrites
from deskwire.storage.tables.accounts.roles import RoleReads, RoleWrites
from deskwire.storage.tables.accounts.sessions import (
    AccessTokenReads,
    AccessTokenWrites,
    SessionReads,
    SessionWrites,
)
from deskwire.storage.tables.accounts.setup import SetupReads, SetupWrites
from deskwire.storage.tables.accounts.teams import TeamReads, TeamWrites
from deskwire.storage.tables.accounts.web_push import WebPushReads
from deskwire.storage.tables.audit import AuditReads, AuditWrites
from deskwire.storage.tables.audit_push import PushReads, PushWrites
from deskwire.storage.tables.channels import ChannelReads, ChannelWrites
from deskwire.storage.tables.cluster import ClusterReads, ClusterWrites
from deskwire.storage.tables.contacts.contacts import (
    ContactReads,
    ContactWrites,
    MemoryReads,
    MemoryWrites,
    ProfileReads,
    ProfileWrites,
)
from deskwire.storage.tables.contacts.lists import ContactListReads
from deskwire.storage.tables.contacts.merging import MergeReads, MergeWrites
from deskwire.storage.tables.conversations.activity import ActivityReads, ActivityWrites
from deskwire.storage.tables.conversations.agent_view import AgentViewReads, SeenReads, SeenWrites
from deskwire.storage.tables.conversations.bulk_jobs import BulkReads, BulkWrites
from deskwire.storage.tables.conversations.conversations import (
    ConversationReads,
    ConversationWrites,
    ExpiryReads,
)
from deskwire.storage.tables.conversations.drafts import DraftReads, DraftWrites
from deskwire.storage.tables.conversations.held_messages import HeldReads, HeldWrites
from deskwire.storage.tables.conversations.imports import ImportReads, ImportWrites
from deskwire.storage.tables.conversations.lists import ConversationListReads
from deskwire.storage.tables.conversations.mentions import MentionReads, MentionWrites
from deskwire.storage.tables.conversations.merges import ConversationMergeReads, ConversationMergeWrites
from deskwire.storage.tables.conversations.saved_views import SavedViewReads, SavedViewWrites
from deskwire.storage.tables.customers import CustomerSessionReads, CustomerSessionWrites
from deskwire.storage.tables.events.consumers import ConsumerReads, ConsumerWrites
from deskwire.storage.tables.events.events import EventReads, EventWrites, FeedReads
from deskwire.storage.tables.idempotency import AnswerReads, AnswerWrites
from deskwire.storage.tables.mail import MailWrites
from deskwire.storage.tables.mail_reads import MailReads
from deskwire.storage.tables.reports.reports import ReportReads
from deskwire.storage.tables.search import SearchSourceReads, SearchSourceWrites
from deskwire.storage.tables.snippets import SnippetReads, SnippetWrites
from deskwire.storage.tables.surveys.responses import SurveyResponseReads, SurveyResponseWrites
from deskwire.storage.tables.surveys.surveys import SurveyReads, SurveyWrites
from deskwire.storage.tables.tickets.lists import TicketListReads
from deskwire.storage.tables.tickets.tickets import TicketReads, TicketWrites
from deskwire.storage.tables.translations import TranslationReads, TranslationWrites
from deskwire.storage.tables.uploads import UploadReads, UploadWrites
from deskwire.storage.tables.webhooks.deliveries import (
    DeliveryReads,
    DeliveryWrites,
    ReplayReads,
    ReplayWrites,
)
from deskwire.storage.tables.webhooks.delivery_log import DeliveryFigureReads, DeliveryLogReads
from deskwire.storage.tables.webhooks.endpoints import EndpointReads, EndpointWrites
from deskwire.storage.tables.workflows import WorkflowReads, WorkflowWrites


class AllReads(
    ConversationReads,
    ConversationListReads,
    ActivityReads,
    AgentViewReads,
    MentionReads,
    ConversationMergeReads,
    SeenReads,
    DraftReads,
    HeldReads,
    ContactReads,
    ContactListReads,
    ProfileReads,
    MergeReads,
    EventReads,
    FeedReads,
    EndpointReads,
    DeliveryReads,
    DeliveryLogReads,
    DeliveryFigureReads,
    ReplayReads,
    OrganisationReads,
    RoleReads,
    PeopleReads,
    MachineReads,
    SessionReads,
    IdentityReads,
    AccessTokenReads,
    MailReads,
    LinkReads,
    FactorReads,
    SetupReads,
    NotificationSettingsReads,
    WebPushReads,
    ChannelReads,
    CustomerSessionReads,
    ConsumerReads,
    MemoryReads,
    TranslationReads,
    SavedViewReads,
    BulkReads,
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
    PushReads,
    SearchSourceReads,
    ReportReads,
    ClusterReads,
):
    """Implements `ports.Reader`, except for search and for queries that depend on how positions are assigned."""


class AllWrites(
    AllReads,
    ConversationWrites,
    SeenWrites,
    ActivityWrites,
    ContactWrites,
    ProfileWrites,
    MergeWrites,
    EventWrites,
    EndpointWrites,
    ReplayWrites,
    DeliveryWrites,
    OrganisationWrites,
    RoleWrites,
    HeldWrites,
    DraftWrites,
    MentionWrites,
    ConversationMergeWrites,
    SavedViewWrites,
    BulkWrites,
    PeopleWrites,
    MachineWrites,
    OidcWrites,
    SessionWrites,
    AccessTokenWrites,
    MailWrites,
    FactorWrites,
    SetupWrites,
    CustomerSessionWrites,
    ConsumerWrites,
    MemoryWrites,
    TranslationWrites,
    SnippetWrites,
    ChannelWrites,
    SurveyWrites,
    SurveyResponseWrites,
    TeamWrites,
    TicketWrites,
    UploadWrites,
    AnswerWrites,
    WorkflowWrites,
    ImportWrites,
    PushWrites,
    AuditWrites,
    SearchSourceWrites,
    ClusterWrites,
):
    """Implements `ports.Transaction`, except for changes that depend on how positions are assigned."""

    def erase_conversation(self, state: Conversation) -> None:
        if any(event.conversation == state.rowid for event in self.published):
            raise StaleState("events of the conversation are in the same commit and unpublished")
        self.erase_deliveries(state.rowid)
        self.erase_events(state.rowid)
        self.detach_uploads(state.rowid)
        self.erase_conversation_rows(state.rowid)

    def detach_from_message(self, conversation: int, upload_ids: Collection[str]) -> None:
        gone = set(upload_ids) - self.attached_in(conversation)
        self.detach_these(conversation, gone)
        self.strip_drafts(conversation, gone)
        self.strip_held(conversation, gone)

    def rewrite_events(
        self, project: Project, conversation: int, message_id: str, rewritten: Callable[[bytes], bytes]
    ) -> None:
        self.redacted.add(conversation)
        events = self.put_rewritten(conversation, message_id, rewritten)
        self.forget_answers_to(conversation, events)

    def erase_ticket(self, ticket: Ticket) -> None:
        self.erase_deliveries(ticket_lane(ticket.rowid))
        self.erase_ticket_events(ticket.rowid)
        self.erase_ticket_rows(ticket)

    def erase_response_events(self, survey: int, responses: Sequence[str]) -> None:
        if responses:
            for lane in self._known_lanes([response_lane(each) for each in responses]):
                self.erase_deliveries(lane)
                self.erase_events(lane)

    def _known_lanes(self, lanes: Sequence[int]) -> Sequence[int]:
        """Return the lanes with stored events or deliveries, which are few because both are pruned."""
        marks = ", ".join("?" for _ in lanes)
        rows = self.conn.execute(
            f"SELECT conversation FROM events WHERE conversation IN ({marks}) "
            f"UNION SELECT lane FROM deliveries WHERE lane IN ({marks})",
            (*lanes, *lanes),
        ).fetchall()
        return [lane for (lane,) in rows]

    def erase_contact(self, contact: int) -> None:
        self.erase_deliveries(contact_lane(contact))
        self.erase_ticket_deliveries(contact_lane(contact))
        self.erase_events(contact_lane(contact))
        self.forget_contact_channel(contact)
        self.clear_memory(contact)
        self.erase_uploads_of_contact(contact)
        self.erase_contact_row(contact)
