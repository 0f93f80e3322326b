"""Deliveries on terminals of any width."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from deskwire.commands.deliveries.delivery_log import delivery_lines, delivery_table, recovery_lines

DELIVERY: dict[str, Any] = {
    "id": "dlv_01KZ0000000000000000000000",
    "endpointId": "whk_01KZ0000000000000000000000",
    "eventId": "evt_01KZ0000000000000000000000",
    "eventType": "contact.updated",
    "conversationId": None,
    "sequence": None,
    "status": "skipped",
    "reason": "the circuit is open \x1b[31m",
    "attempts": [],
    "nextAttemptAt": None,
    "redeliveryOf": None,
    "redeliveredAs": None,
    "createdAt": "2026-11-01T12:00:00.000Z",
    "endedAt": "2026-11-01T12:00:00.000Z",
}


@pytest.mark.parametrize("width", [80, 100, 160, 220, 240])
def test_ids_are_whole_at_any_width_and_no_text_controls_the_terminal(width: int) -> None:
    console = Console(file=io.StringIO(), width=width)
    console.print(delivery_table([DELIVERY, DELIVERY], width))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert shown.count(DELIVERY["id"]) == shown.count(DELIVERY["endpointId"]) == 2
    assert all(line.isprintable() for line in shown.splitlines())
    assert "skipped" in shown


def test_delivery_without_conversation_and_attempt_has_no_lines_for_them() -> None:
    shown = list(delivery_lines(DELIVERY))
    assert not any(line.startswith(("Conversation", "Sequence", "Next", "Repeat")) for line in shown)
    assert "Reason:       the circuit is open \\x1b[31m" in shown


def test_recovery_is_shown_in_words() -> None:
    assert list(recovery_lines({"count": 1, "notStored": 0}, False)) == ["1 delivery sent again."]
    assert list(recovery_lines({"count": 2, "notStored": 3}, True)) == [
        "2 deliveries would be sent again.",
        "3 can't be sent again, because the events are no longer stored.",
    ]
