"""A replay: the events of one conversation are sent to one endpoint again, whatever became of them (ADR 10)."""

from __future__ import annotations

from typing import Annotated

import trio
from pydantic import Field

from deskwire.engine.audit.audited_changes import replayed
from deskwire.engine.conversations.conversation import no_such_conversation
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Reader, Transaction
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.replay import Replayable, Replayed, replayed_types
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import Routes
from deskwire.http.resources.conversations.operations import find as find_conversation
from deskwire.http.resources.webhooks import deliveries
from deskwire.http.resources.webhooks.endpoints import ONE, endpoint_of, require_reading
from deskwire.http.schemas import webhooks as shapes

routes = Routes(deliveries.routes.tag, deliveries.routes.access)


class ReplayBody(Body):
    """The conversation whose events are sent again: all of them, or those `from` one sequence `to` another."""

    conversation_id: Annotated[str, Field(max_length=40)]
    first: Annotated[Annotated[int, Field(ge=1, lt=1 << 63)] | None, Field(alias="from")] = None
    last: Annotated[Annotated[int, Field(ge=1, lt=1 << 63)] | None, Field(alias="to")] = None
    dry_run: bool = False


@routes.add(
    "POST",
    f"{ONE}/replay",
    operation_id="replayConversation",
    body=ReplayBody,
    answer=shapes.Replay,
    errors=("webhook_disabled", "conversation_not_found"),
    records=("webhook.replayed",),
)
async def replay(call: Call[ReplayBody, Query]) -> Answer:
    """Send the events of one conversation to an endpoint again, in their order, also those that had arrived.

    `count` is the number of new deliveries, with `dryRun` the number there would be. Events that the endpoint is not
    subscribed to are left out, and so are the `pending` ones that are on their way to it anyway. `notStored` is the number
    of events that can't be sent again, as they are no longer stored. An endpoint that was created later, or has begun to
    list a type later, gets the earlier events, too.
    """
    services, body, find = call.services, call.body, endpoint_of(call)

    def looked(reader: Reader) -> tuple[Endpoint, int, Replayed, Replayable]:
        endpoint = find(reader)
        require_reading(call, endpoint.events)
        if not is_id(body.conversation_id, "cnv"):
            raise no_such_conversation()
        state, _ = find_conversation(reader, call.project, body.conversation_id)
        wanted = Replayed(replayed_types(endpoint), body.first, body.last)
        return endpoint, state.rowid, wanted, reader.replayable(endpoint.rowid, state.rowid, wanted)

    endpoint, conversation, wanted, found = await services.store.read(looked)
    count = found.count
    if not body.dry_run:
        deliveries.require_enabled(endpoint)
        count = await _replay_all(call, endpoint, conversation, wanted)
    return {
        "count": count,
        "pending": found.pending,
        "notStored": found.not_stored,
        "dryRun": body.dry_run,
    }


async def _replay_all(
    call: Call[ReplayBody, Query], endpoint: Endpoint, conversation: int, wanted: Replayed
) -> int:
    """Make the deliveries, in batches with pauses between them. Returns their number."""
    services, made = call.services, 0
    services.webhooks.probe(endpoint.rowid, None)
    while True:

        def part(tx: Transaction, wanted: Replayed = wanted) -> tuple[int, int | None]:
            now = services.clock()
            count, upto = tx.replay(endpoint.rowid, conversation, wanted, now, deliveries.BATCH)
            if count:
                tx.record(replayed(endpoint.id, endpoint.project, count))
            return count, upto

        count, upto = await services.store.write(part)
        made += count
        if upto is None:
            return made
        wanted = replace(wanted, first=upto + 1)
        await trio.lowlevel.checkpoint()
