"""Authorizations for the realtime stream, and who consumes it (contract 4.4, decisions 5)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.engine.accounts.people import Project
from deskwire.engine.core.clock import iso
from deskwire.engine.core.store import Inline
from deskwire.engine.ports import Reader
from deskwire.engine.stream import token
from deskwire.engine.stream.channel import Channel, open_channel
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import S2S, Answer, Call, Routes, Tag
from deskwire.http.resources.contacts.contacts import find as find_contact
from deskwire.http.resources.conversations.common import find as find_conversation
from deskwire.http.resources.stream.authorization import parse_authorization
from deskwire.http.schemas import webhooks as shapes
from deskwire.http.schemas.base import page_of

routes = Routes(
    Tag("Realtime stream", "Authorizations for the realtime stream, and who consumes it."),
    S2S,
    unrecorded="It changes nothing: who may subscribe, has the key.",
)


class AuthorizationQuery(Query):
    """What a client that can't add to the body may give here instead."""

    socket_id: str | None = Field(None, alias="socket_id")
    channel_name: str | None = Field(None, alias="channel_name")
    consumer_id: str | None = None
    typing_events: str | None = None
    resume: str | None = None


@routes.add(
    "POST",
    "/s2s/stream/auth",
    operation_id="authorizeStream",
    query=AuthorizationQuery,
    json_only=False,
    answer=shapes.StreamAuthorization,
    errors=("malformed_body", "unknown_channel", "conversation_not_found", "contact_not_found"),
    quota="authorizations",
)
async def authorize_stream(call: Call[Body, AuthorizationQuery]) -> Answer:
    """Authorize a channel subscription, asked for in JSON or as a form.

    `socket_id`, `channel_name` and `consumerId` are required, `typingEvents` and `resume` are not. These calls have a
    limit of their own, and count for no other.
    """
    wanted = parse_authorization(call.raw, call.query.model_dump(by_alias=True, exclude_none=True))
    channel = open_channel(call.project, wanted.channel_name)
    await call.services.store.read(Inline(lambda reader: _check_subject(reader, call.project, channel)))
    assert call.access.key is not None, "the route is for server keys"
    grant = token.Grant(
        call.project.id,
        call.access.key.id,
        wanted.socket_id,
        wanted.channel_name,
        wanted.consumer_id,
        wanted.typing_events,
        wanted.resume,
    )
    services = call.services
    issued = token.issue(
        services.stream_keys()[0], grant, now_ms=services.clock(), token_s=services.limits.stream_token_s
    )
    return {"auth": f"{call.project.stream_key}:{issued}"}


def _check_subject(reader: Reader, project: Project, channel: Channel) -> None:
    """Raise NotFound if the project has no such conversation or contact."""
    if channel.kind == "conversation":
        find_conversation(reader, project, channel.subject)
    elif channel.kind == "contact":
        find_contact(reader, project, channel.subject)


@routes.add(
    "GET", "/s2s/stream/consumers", operation_id="listConsumers", answer=page_of(shapes.StreamConsumer)
)
async def list_consumers(call: Call[Body, Query]) -> Answer:
    """Who consumes each channel, since when, and how far it has confirmed."""
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
    """On which channel; all that it has, if none is named."""

    channel: Annotated[
        str | None,
        Field(min_length=1, description="End it on this channel only.", examples=["private-contact-u1"]),
    ] = None


@routes.add(
    "DELETE",
    "/s2s/stream/consumers/<consumer_id>",
    operation_id="endConsumer",
    query=ConsumerQuery,
    answer=shapes.EndedConsumer,
)
async def end_consumer(call: Call[Body, ConsumerQuery]) -> Answer:
    """End a consumer: its connection is closed with 4009, and its channels are free for others at once.

    It is refused for a minute, and for as long as another holds the channel; a new `consumerId` never is.
    """
    consumer_id = call.path["consumer_id"]
    ended = await call.services.hub.end(call.project, consumer_id, call.query.channel)
    return {"consumerId": consumer_id, "ended": list(ended)}
