"""The replay of chats through the API, while all channels record the events."""

from __future__ import annotations

import secrets
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import trio
from msgspec import Struct, to_builtins

from deskwire.commands.demo.channels import (
    FEED,
    STREAM,
    WEBHOOK,
    DemoChannel,
    WebhookReceiver,
    project_channel,
    read_feed,
    run_stream_consumer,
)
from deskwire.commands.demo.chats import Chat, script
from deskwire.commands.demo.client import ApiClient, DemoError
from deskwire.commands.demo.comparison import ChannelReport, ExpectedEvent, compare
from deskwire.commands.demo.service import OwnService, own_service

_ROOT: Final = "/s2s/conversations"
_CLEAN_UP_TIMEOUT_S: Final = 10.0  # for the removal of the webhook endpoint after a cancellation
_OTHER_CONNECTIONS: Final = 4  # besides one for each chat: authorization, feed, clean-up


PROBLEMS_SHOWN_MAX: Final = 10


class ReplayOptions(Struct, frozen=True):
    """The options of the command.

    Args:
        url: the service's base URL without `/v3`, and `key` its server key; None for the demo's own service.
        trust: verifies the service's certificate; None for the public authorities.
        patience_s: how long to wait for missing events while none arrive.
        keep: leave the data directory of the own service.
    """

    chats: tuple[Chat, ...]
    concurrency: int = 16
    url: str | None = None
    key: str | None = None
    trust: ssl.SSLContext | None = None
    webhook: bool = True
    patience_s: float = 30.0
    keep: bool = False


class ReplayReport(Struct, frozen=True):
    """The figures of a replay."""

    chats: int
    commands: int
    retried: int
    seconds: float
    channels: dict[str, ChannelReport]

    @property
    def problems(self) -> list[str]:
        """Return a sentence for each fault."""
        nothing = [] if self.commands else ["no command was acknowledged"]
        return nothing + [f"{name}: {each}" for name, one in self.channels.items() for each in one.problems]

    @property
    def events(self) -> int:
        """Return the number of events on the channel that has most."""
        return max(each.events for each in self.channels.values())

    def document(self) -> dict[str, Any]:
        """Return the report for scripts, of JSON types only."""
        return {
            "passed": not self.problems,
            "problemCount": len(self.problems),
            "problems": self.problems[:PROBLEMS_SHOWN_MAX],
            "chats": self.chats,
            "commands": {"acknowledged": self.commands, "putOff": self.retried},
            "seconds": round(self.seconds, 3),
            "commandsPerSecond": round(self.commands / self.seconds, 1) if self.seconds else None,
            "events": self.events,
            "channels": {name: _figures(each) for name, each in self.channels.items()},
        }


def _figures(report: ChannelReport) -> dict[str, Any]:
    return {name: value for name, value in to_builtins(report).items() if name != "problems"}


async def run_replay(
    options: ReplayOptions,
    log: Callable[[str], None],
    advance: Callable[[], None],
    afterwards: Callable[[ReplayReport, OwnService], Awaitable[None]] | None = None,
) -> ReplayReport:
    """Replay the chats and compare what arrived.

    Args:
        log: takes a line for people.
        advance: called after each chat.
        afterwards: called with the report while the own service is still running.

    Raises DemoError; the webhook endpoint and the own service are then removed, too.
    """
    async with AsyncExitStack() as stack:
        own = await stack.enter_async_context(own_service(options.keep)) if options.url is None else None
        url, key = (own.base_url, own.key) if own is not None else (options.url or "", options.key or "")
        connections = options.concurrency + _OTHER_CONNECTIONS
        async with ApiClient(url, key, trust=options.trust, connections=connections) as client:
            report = await _replay(options, client, log, advance)
        if own is not None and afterwards is not None:
            await afterwards(report, own)
    if own is not None and options.keep:
        log(f"The service's data is in {own.directory}")
    return report


async def _replay(
    options: ReplayOptions, client: ApiClient, log: Callable[[str], None], advance: Callable[[], None]
) -> ReplayReport:
    project = await _free_project(client)
    log(f"Replaying {len(options.chats)} chats at {client.base_url}, {options.concurrency} at once")
    channels = {name: DemoChannel() for name in (WEBHOOK, STREAM, FEED) if name != WEBHOOK or options.webhook}
    expected: list[ExpectedEvent] = []
    async with trio.open_nursery() as receiving:
        async with _webhook_endpoint(receiving, client, channels.get(WEBHOOK)) as secret:
            await receiving.start(run_stream_consumer, client, project, channels[STREAM])
            started = trio.current_time()
            numbered = iter(enumerate(options.chats, 1))
            async with trio.open_nursery() as nursery:
                for _ in range(options.concurrency):
                    nursery.start_soon(_run_chats, client, numbered, expected, advance)
            seconds = trio.current_time() - started
            await read_feed(client, channels[FEED], [each.conversation for each in expected])
            for channel in channels.values():
                await channel.wait_for(channels[FEED].ids, options.patience_s)
        receiving.cancel_scope.cancel()
    reports = compare(expected, channels, secret)
    return ReplayReport(len(options.chats), len(expected), client.retried, seconds, reports)


async def _free_project(client: ApiClient) -> dict[str, Any]:
    """Return the key's project. Raises DemoError if the demo would cut off a consumer of its stream."""
    try:
        project: dict[str, Any] = await client.get("/s2s/project")
    except DemoError as error:
        raise DemoError(f"The service at {client.base_url} can't be used: {error}") from error
    for each in (await client.get("/s2s/stream/consumers"))["items"]:
        if each["channel"] == project_channel(project["id"]) and each["connected"]:
            raise DemoError(
                f"{each['consumerId']} consumes this project's stream and would be cut off; "
                "give the demo a project of its own."
            )
    return project


@asynccontextmanager
async def _webhook_endpoint(
    nursery: trio.Nursery, client: ApiClient, channel: DemoChannel | None
) -> AsyncIterator[str]:
    """Run a receiver with its endpoint for the block, and yield the secret; "" without a channel."""
    if channel is None:
        yield ""
        return
    receiver = WebhookReceiver(channel)
    await nursery.start(receiver.run)
    body = {"url": receiver.url, "events": [], "description": "deskwire demo"}
    try:
        endpoint = await client.post("/s2s/webhooks", body)
    except DemoError as error:
        raise DemoError(
            f"The service refuses the webhook endpoint {receiver.url}: {error}\n"
            "Let it post to this machine (serve --allow-private-webhooks), or use --no-webhook."
        ) from error
    try:
        yield endpoint["secret"]
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + _CLEAN_UP_TIMEOUT_S):
            await client.call("DELETE", f"/s2s/webhooks/{endpoint['id']}")


async def _run_chats(
    client: ApiClient,
    numbered: Iterator[tuple[int, Chat]],
    expected: list[ExpectedEvent],
    advance: Callable[[], None],
) -> None:
    """Take chats from the iterator until none is left. The requests of a chat are sent one after the other."""
    ours = secrets.token_hex(6)
    for number, chat in numbered:
        conversation = ""
        for step in script(chat, number, f"demo-{ours}-{number}"):
            sent_at = trio.current_time()
            path = f"{_ROOT}/{conversation}{step.path}" if conversation else _ROOT
            response = await client.call(step.method, path, step.body)
            conversation = conversation or str(response["id"])
            # A rating's response is not a conversation.
            fields = step.body if step.kind == "rate" else response
            expected.append(ExpectedEvent(conversation, sent_at, step.event, step.noun, fields))
        advance()
