"""Routes of channels: create, list, change, delete, and the check of a site."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from deskwire.engine.channels.channel import (
    CHANNELS_MAX,
    Channel,
    channel_tag,
    channel_view,
    new_channel,
    new_channel_secret,
)
from deskwire.engine.channels.ports import ChannelReader
from deskwire.engine.core.errors import Conflict, Invalid
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.values import replace
from deskwire.engine.customers.page_fetch import PageUnavailable
from deskwire.engine.customers.site_check import check_page, report_view, unreachable
from deskwire.engine.ports import Reader, Transaction
from deskwire.engine.webhooks.endpoint import secret_tail
from deskwire.http.api.calls import Answer, Call, Tagged
from deskwire.http.api.channel_cache import no_such_channel
from deskwire.http.api.input.validation import Body, Query, nulls
from deskwire.http.api.pagination import Paged, page
from deskwire.http.api.routing import MEDIUM, WHOLE, Routes, Tag, either, fresh
from deskwire.http.resources.channels.requests import (
    NESTED,
    NULLABLE,
    ChangeChannelRequest,
    CheckSiteRequest,
    CreateChannelRequest,
    changes_of,
    check_nulls,
    check_settings,
)
from deskwire.http.schemas import channels as shapes
from deskwire.http.schemas.base import Deleted, page_of

_READ: Final = either("projects.manage")
# Our own choice: with the secret of a channel a machine can read and write in the name of each customer (ADR 70).
_MANAGE: Final = either("projects.manage", "contacts.read", "conversations.read", "conversations.reply")

routes = Routes(Tag("Channels", "Manage the widgets by which customers write from a website."), _READ)
_ALL: Final = "/channels"
_ONE: Final = "/channels/<channel_id>"
_DEFAULTS: Final = new_channel("", 0, "", b"", "", 0)
"""The settings that a new channel has unless its request sets them."""


async def _precheck_new(call: Call[CreateChannelRequest, Query]) -> None:
    await call.services.store.read(InlineQuery(lambda reader: _check_new(reader, call)))


async def _precheck_change(call: Call[ChangeChannelRequest, Query]) -> None:
    def check(reader: Reader) -> None:
        before = _find(reader, call)
        _check_change(reader, call, before)

    await call.services.store.read(InlineQuery(check))


@routes.add(
    "POST",
    _ALL,
    fresh(_MANAGE),
    operation_id="createChannel",
    tells="channels",
    body=CreateChannelRequest,
    limit=WHOLE,
    answer=shapes.Channel,
    errors=("channel_limit_reached",),
    idempotent=True,
    further=(nulls(*NULLABLE), *NESTED, _precheck_new),
    records=("channel.created",),
)
async def create_channel(call: Call[CreateChannelRequest, Query]) -> Answer:
    """Create a channel. The response shows the secret that signs identities, only once.

    A repeated request with the same `Idempotency-Key` returns the channel with its secret masked. A machine credential also needs
    the permissions `contacts.read`, `conversations.read` and `conversations.reply`, which the secret gives.
    """
    services, body, now, project = call.services, call.body, call.services.clock(), call.project.rowid
    check_nulls(body)
    secret = new_channel_secret()
    sealed, tail = services.webhooks.seal(secret), secret_tail(secret)
    channel = new_channel(new_id("chn", now), project, body.name, sealed, tail, now)
    channel = replace(channel, **changes_of(body, channel))

    def create(tx: Transaction) -> Channel:
        tx.lock_channels(project)
        if tx.count_channels(project) >= CHANNELS_MAX:
            raise Conflict(f"A project has at most {CHANNELS_MAX} channels.", code="channel_limit_reached")
        _check_new(tx, call)
        return tx.insert_channel(channel)

    made = await services.store.write(call.around(create, partial(channel_view, now=now)))
    return channel_view(made, now, secret)


@routes.add("GET", _ALL, operation_id="listChannels", query=Paged, answer=page_of(shapes.Channel))
async def list_channels(call: Call[Body, Paged]) -> Answer:
    """List the channels of a project, newest first, with masked secrets."""
    query, before, now = call.query, call.query.row, call.services.clock()
    channels = await call.services.store.read(
        lambda reader: reader.channels(call.project.rowid, before, query.rows)
    )
    return page(query, channels, partial(channel_view, now=now), lambda channel: channel.rowid)


@routes.add("GET", _ONE, operation_id="getChannel", answer=shapes.Channel, tagged=True)
async def get_channel(call: Call[Body, Query]) -> Answer:
    """Fetch a channel, with a masked secret. Its `ETag` is for `If-Match` of a change."""
    return _tagged(call, await call.services.store.read(InlineQuery(lambda reader: _find(reader, call))))


@routes.add(
    "PATCH",
    _ONE,
    _MANAGE,
    operation_id="changeChannel",
    tells="channels",
    body=ChangeChannelRequest,
    limit=WHOLE,
    answer=shapes.Channel,
    errors=("changed_meanwhile",),
    tagged=True,
    further=(nulls(*NULLABLE), *NESTED, _precheck_change),
    records=("channel.changed",),
)
async def change_channel(call: Call[ChangeChannelRequest, Query]) -> Answer:
    """Change a channel. To exchange a public key without a gap, add the new one, and remove the old one later.

    If it is disabled, or an origin is removed, customers there can no longer use it from the response on.
    """
    now = call.services.clock()
    check_nulls(call.body)

    def change(tx: Transaction) -> Channel:
        tx.lock_channels(call.project.rowid)
        before = _find(tx, call)
        call.seen.check(lambda: channel_tag(before))
        after = _check_change(tx, call, before)
        if after == before:
            return before
        after = replace(after, updated_at=now)
        tx.save_channel(after)
        return after

    return _tagged(call, await call.services.store.write(change))


@routes.add(
    "POST",
    f"{_ONE}/rotate-secret",
    fresh(_MANAGE),
    operation_id="rotateChannelSecret",
    tells="channels",
    answer=shapes.Channel,
    idempotent=True,
    records=("channel.secret_rotated",),
)
async def rotate_secret(call: Call[Body, Query]) -> Answer:
    """Replace the secret of a channel. The new one is shown only once; the old one also counts for 24 hours.

    A repeated request with the same `Idempotency-Key` rotates nothing, and its response has the secret masked.
    """
    services, now, secret = call.services, call.services.clock(), new_channel_secret()
    sealed = services.webhooks.seal(secret)

    def rotate(tx: Transaction) -> Channel:
        tx.lock_channels(call.project.rowid)
        channel = _find(tx, call).with_secret(sealed, secret_tail(secret), now)
        tx.save_channel(channel)
        return channel

    rotated = await services.store.write(call.around(rotate, partial(channel_view, now=now)))
    return channel_view(rotated, now, secret)


@routes.add(
    "DELETE",
    _ONE,
    operation_id="deleteChannel",
    tells="channels",
    answer=Deleted,
    errors=("changed_meanwhile",),
    tagged=True,
    records=("channel.deleted",),
)
async def delete_channel(call: Call[Body, Query]) -> Answer:
    """Delete a channel. Its sessions end, and its widget disappears; its conversations stay and keep its id."""
    now = call.services.clock()

    def delete(tx: Transaction) -> Channel:
        tx.lock_channels(call.project.rowid)
        channel = _find(tx, call)
        call.seen.check(lambda: channel_tag(channel))
        tx.remove_channel(channel, now)
        return channel

    return {"id": (await call.services.store.write(delete)).id, "deleted": True}


@routes.add(
    "POST",
    f"{_ONE}/check",
    operation_id="checkChannelSite",
    body=CheckSiteRequest,
    limit=MEDIUM,
    answer=shapes.SiteReport,
    unrecorded="It changes nothing.",
    further=(lambda call: _check_url(call),),
)
async def check_site(call: Call[CheckSiteRequest, Query]) -> Answer:
    """Fetch a page, and list what keeps the widget from working on it.

    The page must be public, as URLs of webhooks must, and complete within 10 seconds; 512 KiB of it are read. Nothing on it is run,
    so a loader that a script adds is not seen.
    """
    channel = await call.services.store.read(InlineQuery(lambda reader: _find(reader, call)))
    await _check_url(call)
    sites, url = call.services.sites, call.body.url
    try:
        fetched = await sites.fetch(url)
    except PageUnavailable as reason:
        return report_view(unreachable(url, str(reason), sites.public_url))
    return report_view(check_page(channel, fetched, sites.public_url))


def _tagged(call: Call[Any, Any], channel: Channel) -> Tagged:
    return Tagged(channel_view(channel, call.services.clock()), channel_tag(channel))


def _find(reader: ChannelReader, call: Call[Any, Any]) -> Channel:
    channel = reader.channel(call.path["channel_id"])
    if channel is None or channel.project != call.project.rowid:
        raise no_such_channel()
    return channel


def _check_new(reader: Reader, call: Call[CreateChannelRequest, Query]) -> None:
    after = replace(_DEFAULTS, **_known(changes_of(call.body, _DEFAULTS)))
    check_settings(reader, call.project.rowid, _DEFAULTS, after)


def _check_change(reader: Reader, call: Call[ChangeChannelRequest, Query], before: Channel) -> Channel:
    """Return the changed channel. Raises Invalid."""
    after = replace(before, **_known(changes_of(call.body, before)))
    check_settings(reader, call.project.rowid, before, after)
    return after


def _known(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the changes without the fields whose null is a problem that another check names."""
    return {name: value for name, value in changes.items() if value is not None or name in NULLABLE}


async def _check_url(call: Call[CheckSiteRequest, Query]) -> None:
    if call.body.url is not None and (problems := await call.services.webhooks.check_url(call.body.url)):
        raise Invalid(*problems)
