"""The public settings of a channel, which every page view of a website may fetch."""

from __future__ import annotations

from deskwire.engine.channels.channel import public_view
from deskwire.engine.core.values import entity_tag
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import OPEN, Routes, Tag
from deskwire.http.schemas import channels as shapes

routes = Routes(
    Tag("Public settings of channels", "The settings of a widget that every visitor may see."), OPEN
)


@routes.add(
    "GET",
    "/customer/channels/<channel_id>",
    operation_id="getPublicChannel",
    answer=shapes.PublicChannel,
    errors=("channel_not_found",),
    tagged=True,
    revalidated=True,
)
async def get_public_channel(call: Call[Body, Query]) -> Answer:
    """Fetch the public settings of a channel. A client that sends its `ETag` as `If-None-Match` gets 304 if they are unchanged."""
    _, channel = await call.services.channels.find(call.path["channel_id"])
    view = public_view(channel)
    return call.unless_known(view, entity_tag(view), {"Cache-Control": "no-cache"})
