"""Deliveries as operators read them; control characters in receivers' responses never reach the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from deskwire.commands.api_client.shown import visible, visible_lines

Delivery = Mapping[str, Any]
ROOMY: Final = 210
"""Characters that a line takes with three ids, a time, and a short answer."""
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
_WHOLE: Final = {*_HEADS[:-1]}  # never broken, so that ids can be copied
_STYLES: Final = {"delivered": "green", "dropped": "red", "skipped": "yellow"}


def table(deliveries: Sequence[Delivery], width: int) -> Table:
    """Return the deliveries in a table of `width` characters: one line each if there is room, else a few lines each."""
    grid = Table(show_lines=width < ROOMY)
    for head in _HEADS if width >= ROOMY else _NARROW_HEADS:
        grid.add_column(head, overflow="fold", no_wrap=head in _WHOLE)
    for delivery in deliveries:
        cells = [visible(cell) for cell in _cells(delivery)]
        if width < ROOMY:
            at, identifier, endpoint, kind, conversation, sequence, status, attempts, last = cells
            cells = [
                f"{identifier}\n{endpoint}\n{at}",
                f"{kind} {sequence}\n{conversation}",
                f"{status}, {attempts} tried\n{last}",
            ]
        grid.add_row(*map(Text, cells), style=_STYLES.get(delivery["status"]))
    return grid


def _cells(delivery: Delivery) -> tuple[str, ...]:
    """Return a delivery's cells, one for each heading."""
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


def lines(delivery: Delivery) -> Iterator[str]:
    """Yield everything about one delivery, its attempts and their responses, fit for a terminal."""
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


def counted(said: Mapping[str, Any], dry_run: bool) -> Iterator[str]:
    """Yield what a recovery did, or would do."""
    doing = "would be sent" if dry_run else "sent"
    count = said["count"]
    yield f"{count} {'delivery' if count == 1 else 'deliveries'} {doing} again."
    if lost := said.get("notStored", 0):
        yield f"{lost} can't be sent again, as the events are no longer stored."


def _outcome(attempt: Mapping[str, Any]) -> str:
    return str(attempt["error"] or attempt["status"])
