"""The delivery of a conversation's events, for agents: to webhook endpoints (ADR 19) and stream consumers (ADR 10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from deskwire.engine.core.clock import iso
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.ports import Reader
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.outcome import Outcome, SequenceRange, outcome_view
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Positive, Query
from deskwire.http.api.pagination import Paged, page
from deskwire.http.api.routing import Routes, dashboard
from deskwire.http.resources.conversations import operations
from deskwire.http.resources.conversations.dashboard import FOR_AGENTS
from deskwire.http.schemas.base import page_of
from deskwire.http.schemas.webhooks import ConversationConsumer
from deskwire.http.schemas.webhooks import DeliveryOutcome as Shown

routes = Routes(FOR_AGENTS)


class OutcomeList(Paged):
    """The events to list, and the page of the list: one `sequence`, or the range `from` to `to`."""

    parts = 2

    sequence: Positive | None = None
    first: Annotated[Positive | None, Field(alias="from")] = None
    last: Annotated[Positive | None, Field(alias="to")] = None

    @property
    def before(self) -> tuple[int, int] | None:
        """Return the sequence and the position after which the page starts. Raises BadRequest."""
        place = self.place
        return None if place is None else (place[0], place[1])

    @property
    def wanted(self) -> SequenceRange:
        """Return the sequences to list."""
        if self.sequence is None:
            return SequenceRange(self.first, self.last)
        return SequenceRange(
            max(self.sequence, self.first or 1), min(self.sequence, self.last or self.sequence)
        )


@routes.add(
    "GET",
    "/conversations/<conversation_id>/deliveries",
    dashboard("conversations.read"),
    operation_id="listConversationDeliveries",
    query=OutcomeList,
    answer=page_of(Shown),
)
async def list_conversation_deliveries(call: Call[Body, OutcomeList]) -> Answer:
    """List the outcome of each event of a conversation at each webhook endpoint, newest first.

    An event that was sent to an endpoint several times is listed once: the first delivery that arrived, else the last attempt.
    """
    identifier, query, before = operations.conversation_id(call), call.query, call.query.before
    now = call.services.clock()

    def listed(reader: Reader) -> tuple[Sequence[Outcome], Mapping[int, Endpoint]]:
        state, _ = operations.find(reader, call.project, identifier)
        outcomes = reader.outcomes(state.rowid, query.wanted, before, query.rows)
        return outcomes, {each.rowid: each for each in reader.endpoints(call.project.rowid)}

    outcomes, endpoints = await call.services.store.read(listed)

    def view(outcome: Outcome) -> Mapping[str, Any]:
        return outcome_view(outcome, endpoints[outcome.endpoint], now)

    return page(query, outcomes, view, lambda outcome: (outcome.sequence, outcome.position))


@routes.add(
    "GET",
    "/conversations/<conversation_id>/consumers",
    dashboard("conversations.read"),
    operation_id="listConversationConsumers",
    answer=page_of(ConversationConsumer),
)
async def list_conversation_consumers(call: Call[Body, Query]) -> Answer:
    """List the stream consumers of a conversation's channels, with the newest event that each has confirmed.

    These are the channels of the project, of the conversation and of its contact. A channel without any consumer so far is omitted.
    """
    identifier, services = operations.conversation_id(call), call.services
    state, contact = await services.store.read(
        InlineQuery(lambda reader: operations.find(reader, call.project, identifier))
    )
    names = {"project": call.project.id, "conversation": identifier, "contact": contact.user_id}
    consumers = await services.hub.consumers(
        call.project, [f"private-{kind}-{subject}" for kind, subject in names.items()]
    )

    def confirmed(reader: Reader) -> list[int | None]:
        return [
            None if each.confirmed is None else reader.confirmed_sequence(state.rowid, each.confirmed)
            for each in consumers
        ]

    sequences = await services.store.read(confirmed)
    items = [
        {
            "channel": each.channel,
            "consumerId": each.consumer_id,
            "connected": each.connected,
            "since": iso(each.since),
            "confirmedSequence": sequence,
        }
        for each, sequence in zip(consumers, sequences, strict=True)
    ]
    return {"items": items, "nextCursor": None}
