"""Deliveries as operators read them; what receivers answered is never let loose on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from deskwire.remote.shown import visible, visible_lines

Delivery = Mapping[str, Any]
_STYLES: Final = {"delivered": "green", "dropped": "red", "skipped": "yellow"}


def table(deliveries: Sequence[Delivery]) -> Table:
    """A row for each; the endpoint is named if there is more than one."""
    several = len({each["endpointId"] for each in deliveries}) > 1
    made = Table()
    for head in ("Made", "Delivery", *(["Endpoint"] if several else [])):
        made.add_column(head, no_wrap=True)
    made.add_column("Type")
    made.add_column("Conversation", overflow="fold")
    made.add_column("Sequence", justify="right")
    made.add_column("Status")
    made.add_column("Attempts", justify="right")
    made.add_column("Last answer")
    for each in deliveries:
        cells = [each["createdAt"], each["id"], *([each["endpointId"]] if several else [])]
        cells += [each["eventType"], each["conversationId"] or "-", _number(each["sequence"]), each["status"]]
        cells += [str(len(each["attempts"])), _last_answer(each)]
        made.add_row(*(Text(visible(cell)) for cell in cells), style=_STYLES.get(each["status"]))
    return made


def lines(delivery: Delivery) -> Iterator[str]:
    """Everything about one delivery, its attempts and the answers, fit for a terminal."""
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
    """What a recovery did, or would do."""
    doing = "would be sent" if dry_run else "sent"
    count = said["count"]
    yield f"{count} {'delivery' if count == 1 else 'deliveries'} {doing} again."
    if lost := said.get("notStored", 0):
        yield f"{lost} can't be sent again, as the events are no longer stored."


def _last_answer(delivery: Delivery) -> str:
    attempts = delivery["attempts"]
    return _outcome(attempts[-1]) if attempts else delivery["reason"] or "-"


def _outcome(attempt: Mapping[str, Any]) -> str:
    return str(attempt["error"] or attempt["status"])


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
