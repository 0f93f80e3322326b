"""The delivery log as text for a terminal, and its API calls. Control characters of receivers are escaped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from deskwire.commands.api_client.service import Service
from deskwire.commands.shell.output import visible, visible_lines

Delivery = Mapping[str, Any]
WIDE_MIN: Final = 210  # characters of a line with three ids, a time and a short answer
_HEADS: Final = (
    "Made",
    "Delivery",
    "Endpoint",
    "Type",
    "Conversation",
    "Sequence",
    "Status",
    "Attempts",
    "Last answer",
)
_NARROW_HEADS: Final = ("Delivery", "Event", "Outcome")
_WHOLE: Final = {*_HEADS[:-1]}  # not wrapped, so that ids can be copied
_STYLES: Final = {"delivered": "green", "dropped": "red", "skipped": "yellow"}


def delivery_table(deliveries: Sequence[Delivery], width: int) -> Table:
    """Return a table of the deliveries with one line each if `width` allows, else a few lines each."""
    grid = Table(show_lines=width < WIDE_MIN)
    for head in _HEADS if width >= WIDE_MIN else _NARROW_HEADS:
        grid.add_column(head, overflow="fold", no_wrap=head in _WHOLE)
    for delivery in deliveries:
        cells = [visible(cell) for cell in _cells(delivery)]
        if width < WIDE_MIN:
            at, identifier, endpoint, kind, conversation, sequence, status, attempts, last = cells
            cells = [
                f"{identifier}\n{endpoint}\n{at}",
                f"{kind} {sequence}\n{conversation}",
                f"{status}, {attempts} tried\n{last}",
            ]
        grid.add_row(*map(Text, cells), style=_STYLES.get(delivery["status"]))
    return grid


def _cells(delivery: Delivery) -> tuple[str, ...]:
    """Return a delivery's cells, one for each column."""
    attempts, sequence = delivery["attempts"], delivery["sequence"]
    return (
        delivery["createdAt"],
        delivery["id"],
        delivery["endpointId"],
        delivery["eventType"],
        delivery["conversationId"] or "-",
        "-" if sequence is None else str(sequence),
        delivery["status"],
        str(len(attempts)),
        _outcome(attempts[-1]) if attempts else delivery["reason"] or "-",
    )


def delivery_lines(delivery: Delivery) -> Iterator[str]:
    """Yield the lines of one delivery, its attempts and responses, safe for a terminal."""
    facts = {
        "Delivery": delivery["id"],
        "Endpoint": delivery["endpointId"],
        "Event": f"{delivery['eventId']} {delivery['eventType']}",
        "Conversation": delivery["conversationId"],
        "Sequence": delivery["sequence"],
        "Status": delivery["status"],
        "Reason": delivery["reason"],
        "Made": delivery["createdAt"],
        "Ended": delivery["endedAt"],
        "Next attempt": delivery["nextAttemptAt"],
        "Repeats": delivery["redeliveryOf"],
        "Repeated as": delivery["redeliveredAs"],
    }
    for name, value in facts.items():
        if value is not None:
            yield f"{name + ':':<14}{visible(str(value))}"
    for attempt in delivery["attempts"]:
        yield ""
        yield visible(
            f"Attempt {attempt['number']}, {attempt['at']}, {attempt['latencyMs']} ms: {_outcome(attempt)}"
        )
        if attempt["answer"]:
            yield from (f"  | {line}" for line in visible_lines(attempt["answer"]))


def recovery_lines(result: Mapping[str, Any], dry_run: bool) -> Iterator[str]:
    """Yield the result of a recovery or dry run."""
    doing = "would be sent" if dry_run else "sent"
    count = result["count"]
    yield f"{count} {'delivery' if count == 1 else 'deliveries'} {doing} again."
    if lost := result.get("notStored", 0):
        yield f"{lost} can't be sent again, because the events are no longer stored."


def _outcome(attempt: Mapping[str, Any]) -> str:
    return str(attempt["error"] or attempt["status"])


PAGE_SIZE: Final = 200  # decisions 1: the largest
_RECOVERY_TIMEOUT_S: Final = 60.0  # a recovery creates thousands of deliveries a second


async def list_deliveries(
    service: Service, endpoint: str | None, filters: Mapping[str, str], limit: int
) -> list[dict[str, Any]]:
    """Return the newest deliveries of one endpoint or of the whole project. Raises ServiceError."""
    if endpoint is None:
        endpoints = [endpoint["id"] for endpoint in (await service.fetch("/s2s/webhooks"))["items"]]
    else:
        endpoints = [endpoint]
    deliveries: list[dict[str, Any]] = []
    for known in endpoints:
        deliveries += await _newest(service, known, filters, limit)
    return sorted(deliveries, key=lambda delivery: (delivery["createdAt"], delivery["id"]), reverse=True)[
        :limit
    ]


async def _newest(
    service: Service, endpoint: str, filters: Mapping[str, str], limit: int
) -> list[dict[str, Any]]:
    deliveries: list[dict[str, Any]] = []
    cursor: str | None = None
    while len(deliveries) < limit:
        params = {**filters, "limit": str(min(PAGE_SIZE, limit - len(deliveries)))}
        if cursor is not None:
            params["cursor"] = cursor
        page = await service.fetch(f"/s2s/webhooks/{endpoint}/deliveries", params)
        deliveries += page["items"]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    return deliveries


async def get_delivery(service: Service, delivery: str) -> dict[str, Any]:
    """Return one delivery with its attempts. Raises ServiceError."""
    return dict(await service.fetch(f"/s2s/deliveries/{delivery}"))


async def redeliver(service: Service, delivery: str) -> dict[str, Any]:
    """Send a delivery again, and return the new one. Raises ServiceError."""
    return dict(await service.post(f"/s2s/deliveries/{delivery}/redeliver"))


async def recover(service: Service, endpoint: str, since: str, dry_run: bool) -> dict[str, Any]:
    """Send again all dropped or skipped deliveries since a time or event. Return the counts. Raises ServiceError."""
    body = {"since": since, "dryRun": dry_run}
    return dict(await service.post(f"/s2s/webhooks/{endpoint}/recover", body, _RECOVERY_TIMEOUT_S))
