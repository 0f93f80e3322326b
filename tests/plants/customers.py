"""Bugs of customers: their messages, their sessions, and their streams."""

from __future__ import annotations

from typing import Any

from deskwire.engine.core.values import replace
from deskwire.engine.customers import streams
from deskwire.engine.customers.stream import RenderedEvents
from deskwire.engine.events.event_stream import StreamStart, find_start
from deskwire.http.api.auth.customers import CustomerSessions
from deskwire.storage.tables.conversations.conversations import ConversationWrites
from tests.plants.registry import Patch, plant


@plant("simulation")
def store_a_customers_message_again_at_a_retry(patch: Patch) -> None:
    """Client ids of messages are not looked up, and not stored."""
    insert = ConversationWrites.insert_message

    def without_id(self: Any, conversation: int, message: Any, sequence: int | None) -> None:
        insert(self, conversation, replace(message, client_id=None), sequence)

    patch.setattr(ConversationWrites, "insert_message", without_id)


@plant("simulation")
def show_customers_the_envelope(patch: Patch) -> None:
    """The customer's stream carries the stored envelope."""

    def whole(self: RenderedEvents, event: Any, *, shared: bool) -> bytes | None:
        return bytes(event.body)

    patch.setattr(RenderedEvents, "rendered", whole)


@plant("simulation")
def resume_a_customers_stream_an_event_too_late(patch: Patch) -> None:
    """A stream continues after the newest event instead of the one that the browser has."""

    def late(reader: Any, project: int, after: str | None) -> StreamStart:
        start = find_start(reader, project, after)
        newest = reader.newest_event(project)
        return start if newest is None else start._replace(position=newest[0])

    patch.setattr(streams, "find_start", late)


@plant("simulation")
def keep_an_ended_session_in_the_cache(patch: Patch) -> None:
    """A session that has ended stays in the cache of tokens."""
    patch.setattr(CustomerSessions, "_remove", lambda self, ids: None)
