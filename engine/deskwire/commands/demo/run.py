"""The whole demo in one nursery tree: service, receiver, consumer, and the replay in their middle."""

from __future__ import annotations

import secrets
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import trio
from msgspec import Struct

from deskwire.commands.demo.chats import Chat
from deskwire.commands.demo.checks.history import FEED, STREAM, WEBHOOK, History
from deskwire.commands.demo.checks.journal import Journal
from deskwire.commands.demo.checks.replay import Replay
from deskwire.commands.demo.clients.api import Api
from deskwire.commands.demo.clients.consumer import Consumer, project_channel
from deskwire.commands.demo.clients.feed import Feed, just_before
from deskwire.commands.demo.clients.receiver import Receiver
from deskwire.commands.demo.errors import DemoError
from deskwire.commands.demo.figures import Report, Run, report
from deskwire.commands.demo.launch import OwnService, own_service

SAMPLE: Final = 50
"""Conversations that are fetched at the end to compare them with their last events."""
CLEAN_UP_S: Final = 10.0
"""The time that the webhook endpoint's removal may take when the demo is being cancelled."""
_BESIDES: Final = 4  # connections beside those of the chats: for authorizations, the feed, the clean-up


class Plan(Struct, frozen=True):
    """The plan of a demo.

    Args:
        url: the service's base URL without `/v3`, and `key` its server key; None for a service of one's own.
        trust: verifies the service's certificate; None for the public authorities.
        patience_s: how long to wait for events without any arriving.
        keep: leave the data directory of one's own service.
    """

    chats: tuple[Chat, ...]
    concurrency: int = 16
    url: str | None = None
    key: str | None = None
    trust: ssl.SSLContext | None = None
    webhook: bool = True
    patience_s: float = 30.0
    keep: bool = False


class Target(Struct, frozen=True):
    """The service with its project."""

    api: Api
    project_id: str
    stream_key: str
    own: OwnService | None


async def run_demo(
    plan: Plan,
    say: Callable[[str], None],
    advance: Callable[[], None],
    afterwards: Callable[[Report, OwnService], Awaitable[None]] | None = None,
) -> Report:
    """Carry out the plan and judge what happened.

    Args:
        say: takes a line for people.
        advance: called when a chat is over.
        afterwards: called with the report while the own service is still there.

    Raises DemoError if it can't start or go on; the endpoint and the own service are gone then, too.
    """
    try:
        async with AsyncExitStack() as stack:
            own = await stack.enter_async_context(own_service(plan.keep)) if plan.url is None else None
            history, run = await _with_service(plan, own, say, advance)
            if own is not None and afterwards is not None:
                await afterwards(report(history, run, []), own)
    except* DemoError as group:
        raise first_failure(group) from None
    if own is not None and plan.keep:
        say(f"The service's data is in {own.directory}")
    complaints = [own.complaint] if own is not None and own.complaint else []
    return report(history, run, complaints)


def first_failure(group: BaseExceptionGroup[DemoError]) -> DemoError:
    """Return a failure that ended the demo."""
    for each in group.exceptions:
        return first_failure(each) if isinstance(each, BaseExceptionGroup) else each
    raise AssertionError("a group is never empty")


async def _with_service(
    plan: Plan, own: OwnService | None, say: Callable[[str], None], advance: Callable[[], None]
) -> tuple[History, Run]:
    url, key = (own.base_url, own.key) if own is not None else (plan.url or "", plan.key or "")
    api = Api(url, key, plan.concurrency + _BESIDES, plan.trust)
    try:
        target = await _target(api, own)
        say(f"Replaying {len(plan.chats)} chats at {url}, {plan.concurrency} at once")
        journals = {STREAM: Journal(), FEED: Journal()} | ({WEBHOOK: Journal()} if plan.webhook else {})
        async with trio.open_nursery() as listening:
            async with _webhook(listening, api, journals.get(WEBHOOK)) as secret:
                consumer = Consumer(api, target.project_id, target.stream_key, journals[STREAM])
                await listening.start(consumer.run)
                result = await _replay(plan, target, journals, secret, consumer, advance)
            listening.cancel_scope.cancel()
        return result
    finally:
        await api.aclose()


async def _target(api: Api, own: OwnService | None) -> Target:
    result = await api.call("GET", "/s2s/project", repeatable=True)
    if result.outcome != "acknowledged":
        raise DemoError(f"The service at {api.base_url} can't be used: {result.detail}")
    target = Target(api, result.body["id"], result.body["streamKey"], own)
    await _refuse_to_disturb(target)
    return target


async def _refuse_to_disturb(target: Target) -> None:
    """Raise DemoError if somebody consumes the stream that the demo would take over."""
    result = await target.api.call("GET", "/s2s/stream/consumers", repeatable=True)
    if result.outcome != "acknowledged":
        raise DemoError(f"The stream's consumers can't be listed: {result.detail}")
    for each in result.body["items"]:
        if each["channel"] == project_channel(target.project_id) and each["connected"]:
            raise DemoError(
                f"{each['consumerId']} consumes this project's stream and would be cut off; "
                "give the demo a project of its own."
            )


@asynccontextmanager
async def _webhook(nursery: trio.Nursery, api: Api, journal: Journal | None) -> AsyncIterator[str]:
    """Run a receiver with its endpoint for the block, and yield the endpoint's secret; nothing at all without a journal."""
    if journal is None:
        yield ""
        return
    receiver = Receiver(journal)
    await nursery.start(receiver.run)
    body = {"url": receiver.url, "events": [], "description": "deskwire demo"}
    result = await api.call("POST", "/s2s/webhooks", body)
    if result.outcome != "acknowledged":
        raise DemoError(
            f"The service refuses the webhook endpoint {receiver.url}: {result.detail}\n"
            "Let it post to this machine (serve --allow-private-webhooks), or use --no-webhook."
        )
    try:
        yield result.body["secret"]
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLEAN_UP_S):
            await api.call("DELETE", f"/s2s/webhooks/{result.body['id']}", repeatable=True)


async def _replay(
    plan: Plan,
    target: Target,
    journals: dict[str, Journal],
    secret: str,
    consumer: Consumer,
    advance: Callable[[], None],
) -> tuple[History, Run]:
    ours = f"demo-{secrets.token_hex(6)}-"
    replay = Replay(target.api, ours, advance)
    started = trio.current_time()
    await replay.run(plan.chats, plan.concurrency)
    seconds = trio.current_time() - started
    await _collect(target.api, replay, journals, plan.patience_s)
    history = History(
        ours=ours,
        commands=replay.commands,
        channels={name: journals[name].arrivals for name in (WEBHOOK, STREAM, FEED) if name in journals},
        secret=secret,
        finals=await _finals(target.api, replay),
        exact=target.own is not None,
    )
    run = Run(len(plan.chats), seconds, target.api.put_off, consumer.reconnects)
    return history, run


async def _collect(api: Api, replay: Replay, journals: dict[str, Journal], patience_s: float) -> None:
    """Read the feed, and wait until every event in it has arrived on the other channels, too."""
    # A creation whose answer was lost may be the earliest; then its events know better.
    live = [event_id for name in (STREAM, WEBHOOK) if name in journals for event_id in journals[name].ids]
    start = just_before([*replay.conversations(), *live])
    if start is None:
        return
    feed = Feed(api, journals[FEED], start)
    await feed.read()
    for name in (STREAM, WEBHOOK):
        if name in journals:
            await journals[name].wait_for(journals[FEED].ids, patience_s)
    # A command whose answer was lost may have been carried out since.
    await feed.read()


async def _finals(api: Api, replay: Replay) -> dict[str, object]:
    """Return some conversations as they are now, evenly spread over the replay."""
    created = replay.conversations()
    step = max(1, len(created) // SAMPLE)
    finals: dict[str, object] = {}
    for conversation in created[::step]:
        result = await api.call("GET", f"/s2s/conversations/{conversation}", repeatable=True)
        finals[conversation] = result.body
    return finals
