"""Follows the feed of a project (decisions 4), and prints what comes."""

from __future__ import annotations

import errno
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus

import orjson
import trio

from deskwire.commands.api_client.access import Access
from deskwire.commands.api_client.page import raw_items
from deskwire.commands.api_client.service import Refused, Service, ServiceError
from deskwire.commands.api_client.shown import visible
from deskwire.commands.listen.envelope import read_event
from deskwire.commands.listen.feed import PAGE, WAIT_S, Feed, FeedError
from deskwire.commands.listen.patience import Patient
from deskwire.engine.core.clock import wall_clock


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run.

    Args:
        types: the types to show; empty for all of the contract.
        start: `now`, `beginning`, or the event to begin behind.
        once: whether to end when everything that is stored was printed.
        as_json: whether envelopes are printed instead of lines for people.
    """

    access: Access
    types: tuple[str, ...]
    start: str
    once: bool
    as_json: bool


async def run_tail(plan: Plan) -> int:
    """Print events until SIGINT or SIGTERM, or with `once` until there are no more; the exit status.

    It is 1 if the feed can't be read, else 0.
    """
    failure: ServiceError | FeedError | None = None
    broken = False
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with Service(plan.access) as service, trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_at_signal, signals, nursery.cancel_scope)
            try:
                await _follow(plan, Patient(service, not plan.once, _note))
            except (ServiceError, FeedError) as error:
                failure = error
            except BrokenPipeError:
                broken = True
            nursery.cancel_scope.cancel()
    if broken:
        raise BrokenPipeError(errno.EPIPE, "nobody reads the output")  # click ends quietly then
    if failure is not None:
        _note(f"Error: {failure}")
    return 0 if failure is None else 1


async def _cancel_at_signal(signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
    async for _ in signals:
        scope.cancel()


async def _follow(plan: Plan, service: Patient) -> None:
    after = await _place(plan, service)
    wait_s = 0 if plan.once else WAIT_S
    while True:
        params = {"limit": str(PAGE), **({"wait": str(wait_s)} if wait_s else {})}
        if plan.types:
            params["types"] = ",".join(plan.types)
        if after is not None:
            params["after"] = after
        try:
            page = await service.get("/s2s/events", params, wait_s)
        except Refused as refusal:
            if refusal.status != HTTPStatus.GONE or after is None:
                raise
            _note(
                f"Events behind {after} are no longer stored, some may be missing; going on from the oldest."
            )
            after = None
            continue
        bodies = _bodies(page)
        for body in bodies:
            _print(body, as_json=plan.as_json)
        if bodies:
            after = read_event(bodies[-1]).id
        if plan.once and orjson.loads(page)["nextCursor"] is None:
            return


async def _place(plan: Plan, service: Patient) -> str | None:
    """Return the event to begin behind, None for the oldest that is stored."""
    if plan.start == "beginning":
        return None
    feed = Feed(service, _note)
    if plan.start == "now":
        await feed.seek_end(wall_clock())
    else:
        await feed.seek(plan.start)
    return feed.after


def _bodies(page: bytes) -> list[bytes]:
    try:
        return raw_items(page)
    except ValueError as error:
        raise FeedError(f"The feed can't be read: {error}. Is this a Deskwire service?") from error


def _print(body: bytes, *, as_json: bool) -> None:
    if as_json:
        line = body.decode()
    else:
        at = visible(str(orjson.loads(body)["createdAt"]))
        found = read_event(body)
        sequence = "-" if found.sequence is None else str(found.sequence)
        about = found.conversation or found.contact or "-"
        line = f"{at}  {visible(found.type):<25} {visible(about):<30} {sequence:>6}  {visible(found.id)}"
    print(line, flush=True)


def _note(line: str) -> None:
    print(visible(line), file=sys.stderr, flush=True)
