"""Authorizations for the realtime stream, and its consumers (contract 4.4, decisions 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from deskwire.engine.accounts.people import Project
from deskwire.engine.audit.audited_changes import consumer_ended
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import BadRequest, DomainError, Invalid
from deskwire.engine.core.store import InlineJob, InlineQuery
from deskwire.engine.ports import Reader
from deskwire.engine.stream import token
from deskwire.engine.stream.channel import StreamChannel, open_channel, with_user_id
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import Routes, Tag, s2s
from deskwire.http.api.services import Services
from deskwire.http.resources.contacts.contacts import find as find_contact
from deskwire.http.resources.conversations.operations import find as find_conversation
from deskwire.http.resources.stream.authorization import parse_authorization
from deskwire.http.schemas import webhooks as shapes
from deskwire.http.schemas.base import page_of

routes = Routes(
    Tag("Realtime stream", "Authorize subscriptions to the realtime stream, and manage its consumers."),
    unrecorded="It changes nothing: a caller with the key may subscribe.",
)
_READ = s2s("conversations.read")
_MANAGE = s2s("webhooks.manage")


def _note_refused(
    services: Services, body: bytes, query: Mapping[str, str], refusal: DomainError, known: bool
) -> None:
    """Close the connection that asked for the refused authorization soon, because its client does not ask again."""
    try:
        request = parse_authorization(body, query)
    except (BadRequest, Invalid):
        return
    services.authorization_refused(request.socket_id, request.channel_name, refusal.retry_after_s or 0, known)


class AuthorizationQuery(Query):
    """The fields of the request, for clients that can't put them into the body."""

    socket_id: str | None = Field(None, alias="socket_id")
    channel_name: str | None = Field(None, alias="channel_name")
    consumer_id: str | None = None
    typing_events: str | None = None
    resume: str | None = None


@routes.add(
    "POST",
    "/s2s/stream/auth",
    _READ,
    operation_id="authorizeStream",
    query=AuthorizationQuery,
    json_only=False,
    answer=shapes.StreamAuthorization,
    errors=(
        "unsupported_media_type",
        "malformed_body",
        "unknown_channel",
        "conversation_not_found",
        "contact_not_found",
        "contact_merged",
    ),
    quota="authorizations",
    held=True,
    refused_for_now=_note_refused,
)
async def authorize_stream(call: Call[Body, AuthorizationQuery]) -> Answer:
    """Authorize a subscription to a channel. The body is JSON or a form.

    `socket_id`, `channel_name` and `consumerId` are required; `typingEvents` and `resume` are optional. These calls
    have a rate limit of their own, and do not count against any other. While the database is unavailable, a call waits for up to 15
    seconds.
    """
    request = parse_authorization(call.raw, call.query.model_dump(by_alias=True, exclude_none=True))
    channel = open_channel(call.project, request.channel_name)
    await call.services.store.read(InlineQuery(lambda reader: _check_subject(reader, call.project, channel)))
    grant = token.Grant(
        call.project.id,
        call.access.authorizes_as,
        request.socket_id,
        request.channel_name,
        request.consumer_id,
        request.typing_events,
        request.resume,
    )
    services = call.services
    issued = token.issue(
        services.stream_keys()[0], grant, now_ms=services.clock(), token_s=services.limits.stream_token_s
    )
    return {"auth": f"{call.project.stream_key}:{issued}"}


def _check_subject(reader: Reader, project: Project, channel: StreamChannel) -> None:
    """Raise NotFound if the project has no such conversation or contact."""
    if channel.kind == "conversation":
        find_conversation(reader, project, channel.subject)
    elif channel.kind == "contact":
        find_contact(reader, project, with_user_id(reader, channel).subject)


@routes.add(
    "GET", "/s2s/stream/consumers", _READ, operation_id="listConsumers", answer=page_of(shapes.StreamConsumer)
)
async def list_consumers(call: Call[Body, Query]) -> Answer:
    """List the consumers of each channel, with the newest event that each has confirmed."""
    consumers = await call.services.hub.consumers(call.project)
    items = [
        {
            "channel": each.channel,
            "consumerId": each.consumer_id,
            "connected": each.connected,
            "since": iso(each.since),
            "confirmedEventId": each.confirmed,
            "lag": each.lag,
        }
        for each in consumers
    ]
    return {"items": items, "nextCursor": None}


class ConsumerQuery(Query):
    """The channel on which to end the consumer; default: all of its channels."""

    channel: Annotated[
        str | None,
        Field(
            min_length=1,
            description="End the consumer on this channel only.",
            examples=["private-contact-u1"],
        ),
    ] = None


@routes.add(
    "DELETE",
    "/s2s/stream/consumers/<consumer_id>",
    _MANAGE,
    operation_id="endConsumer",
    query=ConsumerQuery,
    answer=shapes.EndedConsumer,
    errors=("channel_not_released",),
    records=("consumer.ended",),
)
async def end_consumer(call: Call[Body, ConsumerQuery]) -> Answer:
    """End a consumer. Its connection is closed with 4009, and its channels are free for other consumers at once.

    The consumer is refused for a minute, and as long as another one holds the channel. A new `consumerId` is not
    refused.
    """
    consumer_id = call.path["consumer_id"]
    ended = await call.services.hub.end(call.project, consumer_id, call.query.channel)
    if ended:
        entry = consumer_ended(consumer_id, call.project.rowid, len(ended))
        await call.services.store.write(InlineJob(lambda tx: tx.record(entry)))
    return {"consumerId": consumer_id, "ended": list(ended)}
