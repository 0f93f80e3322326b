"""The progress of a conversion."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from deskwire.commands.convert.progress import INTERVAL_S, ConversionProgress
from deskwire.commands.convert.run import SOURCES, convert
from deskwire.commands.convert.tally import ConversionTally
from tests.commands.converting.converted import NOW
from tests.commands.converting.shapes import zendesk_ticket
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import environment


class Clock:
    """A clock that advances with each look at it."""

    def __init__(self, step_s: float) -> None:
        self.now, self.step_s = 0.0, step_s

    def __call__(self) -> float:
        self.now += self.step_s
        return self.now


def said(step_s: float, tickets: int) -> list[str]:
    """Return the lines of a conversion in which each look at the clock takes so long."""
    lines: list[str] = []
    content = b"".join(json.dumps(zendesk_ticket(number)).encode() + b"\n" for number in range(tickets))
    convert(
        SOURCES["zendesk"](),
        [("tickets\x1b.json", io.BytesIO(content))],
        io.BytesIO(),
        ConversionTally(),
        by_email=False,
        now=NOW,
        progress=ConversionProgress(lines.append, Clock(step_s)),
    )
    return lines


def test_long_conversion_reports_both_halves_once_per_interval() -> None:
    lines = said(INTERVAL_S / 100, 500)
    assert lines[0] == "101 records of tickets\\x1b.json read ..."
    assert any(line.endswith(" lines written ...") for line in lines)
    assert len(lines) < 40


def test_short_conversion_reports_nothing() -> None:
    assert said(INTERVAL_S / 100_000, 500) == []


@pytest.mark.parametrize("quiet", [False, True])
def test_piped_conversion_reports_on_stderr_unless_it_is_quiet(tmp_path: Path, quiet: bool) -> None:
    code = (
        "import deskwire.commands.convert.progress as p; p.INTERVAL_S = 0.0\n"
        "from deskwire.__main__ import main; main()"
    )
    command = [sys.executable, "-c", code, "convert", "zendesk", "-", *(["--quiet"] if quiet else [])]
    tickets = "".join(json.dumps(zendesk_ticket(number)) + "\n" for number in range(20))
    done = subprocess.run(
        command,
        input=tickets,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=HANG_TIMEOUT_S,
        check=False,
    )
    progress = [line for line in done.stderr.splitlines() if line.endswith(" ...")]
    assert (progress == []) is quiet
    assert "..." not in done.stdout
    assert "written: 20 conversations" in done.stderr
