"""The output about a delivery, in each state."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from deskwire.commands.listen.feed import FeedEvent
from deskwire.commands.listen.forward import ForwardedEvent, ForwardState, ForwardStep
from deskwire.commands.listen.screen import ROWS, JsonOutput, LineOutput, LiveTable, cells, document
from deskwire.engine.webhooks.delivery import Attempt
from deskwire.engine.webhooks.http.failure import is_unreachable

EVENT = FeedEvent("evt_1", "message.created", "cnv_1", 3, b"")


def step(
    state: ForwardState, attempt: Attempt | None = None, again_in_s: float = 0, number: int = 1
) -> ForwardStep:
    return ForwardStep(ForwardedEvent(f"dlv_{number}", EVENT, 0, 2, 0), state, attempt, again_in_s)


def attempt(status: int | None, error: str | None, number: int = 1) -> Attempt:
    return Attempt(number, 0, 12, status, error, b"")


@pytest.mark.parametrize(
    ("shown", "status"),
    [
        (step("sending"), "sending"),
        (step("waiting"), "receiver is down, waiting"),
        (step("retrying", attempt(500, "status 500"), 2.1), "status 500, again in 2 s"),
        (step("delivered", attempt(204, None)), "204"),
        (step("failed", attempt(500, "status 500", 4)), "failed after 4 attempts: status 500"),
        (step("failed", attempt(410, "status 410")), "failed after 1 attempt: status 410"),
        (step("failed", attempt(None, "TLS: \x1b[31m", 4)), "failed after 4 attempts: TLS: \\x1b[31m"),
    ],
)
def test_status_shows_the_state_of_a_step(shown: ForwardStep, status: str) -> None:
    assert cells(shown)[:4] == ("message.created", "cnv_1", "3", status)


def test_finished_steps_go_to_stdout_and_retries_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    for screen in (LineOutput(), JsonOutput()):
        with screen:
            screen.step(step("sending"))
            screen.step(step("retrying", attempt(500, "status 500"), 2))
            screen.step(step("delivered", attempt(204, None, 2)))
    said = capsys.readouterr()
    plain, as_json = said.out.splitlines()
    assert plain.split() == ["message.created", "cnv_1", "3", "204", "12", "ms"]
    assert json.loads(as_json) == document(step("delivered", attempt(204, None, 2)))
    assert said.err.splitlines() == ["message.created cnv_1 3: status 500, again in 2 s"] * 2


def test_the_table_keeps_the_newest_events_one_row_each_and_counts_all() -> None:
    console = Console(file=io.StringIO(), width=120)
    screen = LiveTable(console)
    for number in range(ROWS + 5):
        screen.step(step("sending", number=number))
        screen.step(step("delivered", attempt(204, None), number=number))
    screen.step(step("failed", attempt(500, "status 500", 4), number=99))
    table = screen.table()
    assert table.row_count == ROWS
    assert table.caption == f"{ROWS + 5} delivered, 1 failed; Ctrl-C ends"


@pytest.mark.parametrize(
    ("words", "nobody"),
    [
        ("connection refused", True),
        ("no route to host", True),
        ("host not found: nobody.test (Name or service not known)", True),
        ("connection closed before the answer", False),
        ("timeout: no answer within 5 s", False),
        ("TLS: certificate verify failed: self-signed certificate", False),
        ("status 500", False),
    ],
)
def test_only_failed_connections_count_as_a_receiver_that_is_down(words: str, nobody: bool) -> None:
    assert is_unreachable(words) is nobody


def test_an_event_that_is_not_forwarded_is_a_line_or_itself(capsys: pytest.CaptureFixture[str]) -> None:
    body = '{"id":"evt_1","data":{"text":"Grüße \u202e"}}'
    event = FeedEvent("evt_1\x1b[2J", "message.created", "cnv_1", 3, body.encode())
    for screen in (LineOutput(), JsonOutput()):
        screen.event(event)
    plain, as_json = capsys.readouterr().out.splitlines()
    assert plain.split() == ["message.created", "cnv_1", "3", "evt_1\\x1b[2J"]
    assert as_json.isascii()
    assert json.loads(as_json) == json.loads(body)
