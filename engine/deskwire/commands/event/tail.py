"""Follows the feed of a project (decisions 4) and prints its events."""

from __future__ import annotations

import errno
import signal
import sys
from collections.abc import AsyncIterator

import orjson
import trio
from msgspec import Struct

from deskwire.commands.api_client.access import ServiceAccess
from deskwire.commands.api_client.service import Service, ServiceError
from deskwire.commands.listen.feed import LONG_POLL_S, FeedError, FeedEvent, FeedReader, RetryingService
from deskwire.commands.shell.output import visible
from deskwire.engine.core.clock import wall_clock


class TailOptions(Struct, frozen=True):
    """The options of a run.

    Args:
        types: the types to show; empty for all types of the contract.
        start: `now`, `beginning`, or the event to start after.
        once: end when all stored events are printed.
        as_json: print envelopes instead of lines for people.
    """

    access: ServiceAccess
    types: tuple[str, ...]
    start: str
    once: bool
    as_json: bool


async def run_tail(plan: TailOptions) -> int:
    """Print events until SIGINT or SIGTERM, or with `once` until the end of the feed. Return the exit status.

    The status is 1 if the feed can't be read, else 0.
    """
    failure: ServiceError | FeedError | None = None
    broken = False
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with Service(plan.access) as service, trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_at_signal, signals, nursery.cancel_scope)
            try:
                await _follow(plan, RetryingService(service, not plan.once, _note))
            except (ServiceError, FeedError) as error:
                failure = error
            except BrokenPipeError:
                broken = True
            nursery.cancel_scope.cancel()
    if broken:
        raise BrokenPipeError(errno.EPIPE, "the output is closed")  # click then ends without a message
    if failure is not None:
        _note(f"Error: {failure}")
    return 0 if failure is None else 1


async def _cancel_at_signal(signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
    async for _ in signals:
        scope.cancel()


async def _follow(plan: TailOptions, service: RetryingService) -> None:
    feed = FeedReader(service, _note, plan.types)
    if plan.start == "now":
        await feed.seek_end(wall_clock())
    elif plan.start != "beginning":
        await feed.seek(plan.start)
    while True:
        page = await feed.read(0 if plan.once else LONG_POLL_S)
        for event in page.events:
            if not plan.types or event.type in plan.types:
                _print(event, as_json=plan.as_json)
        if plan.once and not page.more:
            return


def _print(event: FeedEvent, *, as_json: bool) -> None:
    if as_json:
        line = event.body.decode()
    else:
        at = visible(str(orjson.loads(event.body)["createdAt"]))
        sequence = "-" if event.sequence is None else str(event.sequence)
        about = visible(event.conversation or event.subject or "-")
        line = f"{at}  {visible(event.type):<25} {about:<30} {sequence:>6}  {visible(event.id)}"
    print(line, flush=True)


def _note(line: str) -> None:
    print(visible(line), file=sys.stderr, flush=True)
