"""Example envelopes for the reference, one for each event type beyond the contract, built by the engine's own functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final, get_args

from deskwire.engine.accounts.people import Project
from deskwire.engine.channels.channel import Channel, Look
from deskwire.engine.contacts.contact import Contact, Profile, contact_with_profile_view
from deskwire.engine.conversations.conversation import Author, Conversation, Mention, Message
from deskwire.engine.conversations.events import agent_view, conversation_view, dashboard_message_view
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.values import replace
from deskwire.engine.customers.session import CustomerSession
from deskwire.engine.customers.starting import session_started
from deskwire.engine.events.project_events import (
    Mark,
    Removal,
    contact_changed,
    contact_merged,
    conversations_imported,
    message_received,
    message_removed,
    note_created,
    response_created,
    response_deleted,
    survey_deleted,
    ticket_event,
)
from deskwire.engine.events.types import EventDraft, encode_envelope
from deskwire.engine.surveys.survey import Survey, SurveyResponse, response_view
from deskwire.engine.tickets.ticket import Ticket, ticket_view
from deskwire.engine.uploads.links import no_links
from deskwire.engine.webhooks.delivery import NO_OUTAGE, OutageCounts
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.publish import health_event
from deskwire.engine.webhooks.retry.circuit_breaker import Circuit

_NOON: Final = 1_793_534_400_000  # 2026-11-01T12:00:00.000Z
_PROJECT: Final = "prj_01KZ000000000000000000SH0P"
_ACTOR: Final = Actor("user", "usr_01KZ0000000000000000AGENT1", "Grace")
_MENTIONED: Final = "usr_01KZ0000000000000000AGENT2"
_CONTACT: Final = Contact(
    1, "con_01KZ0000000000000000C0NTCT", "u1", _NOON, _NOON, "Ada", "ada@example.org", None, None
)
_CONVERSATION: Final = Conversation(
    "cnv_01KZ00000000000000000000C1", 1, _NOON, _NOON, title="Where is my order?", messages=1, human=True,
    last_message_at=_NOON, sequence=2, tags=("vip",),
)  # fmt: skip
_NOTE: Final = Message(
    "msg_01KZ00000000000000000000M4",
    Author("agent", _ACTOR.id, _ACTOR.name),
    "@Alan Turing She is a VIP: send it again at once.",
    _NOON,
    internal=True,
    mentions=(Mention("user", _MENTIONED, "Alan Turing"),),
)
_TICKET: Final = Ticket(
    "tkt_01KZ00000000000000000000T1", 1, "Parcel lost", _NOON, _NOON, _NOON, priority="HIGH",
    contact_id=_CONTACT.id, tags=("parcel",),
)  # fmt: skip
_SURVEY: Final = Survey(1, "srv_01KZ00000000000000000000S1", 1, "Delivery", "OPEN", 2, 1, 0, _NOON, _NOON)
_RESPONSE: Final = SurveyResponse(
    1, "rsp_01KZ00000000000000000000R1", 2, 1, "u1", "en", {"q1": 5, "q2": "It came late."}, _NOON
)
_ENDPOINT: Final = Endpoint(
    1, "whk_01KZ0000000000000000000W01", 1, "https://crm.example.org/deskwire", frozenset(), b"", "", _NOON, _NOON,
    description="The CRM",
)  # fmt: skip
_CHANNEL: Final = Channel(
    1, "chn_01KZ000000000000000000WDGT", 1, "widget", "Shop", True, (), "optional", (), True, (), Look(), None, None, False,
    b"", "", _NOON, _NOON,
)  # fmt: skip
_SESSION: Final = CustomerSession(
    1, "cse_01KZ00000000000000000000N1", Project(1, _PROJECT, 1, "Shop", ""), _CHANNEL, _CONTACT, "u1", True, frozenset(), _NOON, _NOON,
    context={"url": "https://shop.example/cart", "title": "Your cart", "language": "en-GB"},
)  # fmt: skip
_OPEN: Final = Circuit(
    20, _NOON - 61_000, 0, _NOON + 10_000, "20 attempts in a row failed within 61 s; the last: status 500"
)


def extension_envelopes() -> Mapping[str, bytes]:
    """Return an envelope of each type beyond the contract, as the engine's functions make it."""
    return {
        draft.type: encode_envelope(draft, f"evt_01KZ0000000000000000000E{number:02}", _PROJECT, _NOON)
        for number, draft in enumerate(_drafts(), 1)
    }


def _drafts() -> Iterator[EventDraft]:
    yield from _of_tickets()
    yield response_created(_SURVEY.id, _RESPONSE.version, response_view(_SURVEY, _RESPONSE))
    yield response_deleted(_SURVEY.id, _RESPONSE.id)
    yield survey_deleted(_SURVEY.id)
    yield _note()
    for what in get_args(Removal):
        yield message_removed(what, _CONVERSATION.id, "msg_01KZ00000000000000000000M1", _NOON, _ACTOR)
    shown = conversation_view(_CONVERSATION, _CONTACT, _PROJECT)
    for mark in get_args(Mark):
        yield message_received(mark, shown, "msg_01KZ00000000000000000000M1", 0, _NOON)
    known = contact_with_profile_view(_CONTACT, Profile({"plan": "pro"}, ("vip",)))
    yield contact_changed(known, ["tags"], _ACTOR)
    yield session_started(_SESSION, _CONTACT, Profile({"plan": "pro"}, ("vip",)))
    yield contact_merged(known, "con_01KZ00000000000000000V1S1T", "visitor-7", _ACTOR)
    yield _imported()
    disabled = replace(_ENDPOINT, status="disabled", status_reason="by the API")
    held = OutageCounts(38, _NOON - 60_000, 0, None)
    yield health_event("circuit.opened", replace(_ENDPOINT, circuit=_OPEN), held, _NOON)
    yield health_event("circuit.closed", _ENDPOINT, NO_OUTAGE, _NOON)
    yield health_event("disabled", disabled, NO_OUTAGE, _NOON)
    yield health_event("enabled", _ENDPOINT, NO_OUTAGE, _NOON)


def _imported() -> EventDraft:
    part = {"id": _CONVERSATION.id, "sequence": 0, "messages": 3, "imported": 3}
    return conversations_imported([{**part, "firstMessageId": "msg_01KZ00000000000000000000M1"}])


def _of_tickets() -> Iterator[EventDraft]:
    done = replace(_TICKET, status="DONE")
    ids = {"id": _TICKET.id, "conversationId": None, "contactId": _TICKET.contact_id}
    yield ticket_event("created", ticket_view(_TICKET), (), _ACTOR)
    yield ticket_event("changed", ticket_view(done), ["status"], _ACTOR)
    yield ticket_event("deleted", ids, (), _ACTOR)


def _note() -> EventDraft:
    view = agent_view(_CONVERSATION, _CONTACT, _PROJECT, _NOTE, None, [_MENTIONED, str(_ACTOR.id)])
    shown = partial(no_links().shown, now=_NOON)
    return note_created(dashboard_message_view(_NOTE, _CONVERSATION.id, shown), view, [_MENTIONED])
